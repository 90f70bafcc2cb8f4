// HostWatch: while a program is recorded from a function, observes the function's accesses to data on the host and to
// random numbers, which are not ops. Internal.
#pragma once

#include <string_view>

#include "core/device/call_context.h"
#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace tenon {

class HostWatch {
 public:
  virtual ~HostWatch() = default;
  // A tensor was made without an op. `filled`: its elements come from the caller.
  virtual void made(const Tensor& tensor, bool filled) = 0;
  // `function` ("copy_to_host") is about to let the caller read or write the elements of `tensor`. Returns the tensor
  // that has them. Throws if they do not exist yet.
  virtual Tensor look(std::string_view function, const Tensor& tensor) = 0;
  // An op is about to make the next `blocks` blocks of random numbers. Returns the range for its record.
  virtual RandomRange draw(uint64_t blocks) = 0;
};

// Sets the calling thread's watch while this object lives; null: none.
using HostWatchScope = ContextScope<&CallContext::host_watch>;

}  // namespace tenon
