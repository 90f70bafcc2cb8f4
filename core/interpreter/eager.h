// The eager interpreter: computes each op when it is called. Internal.
#pragma once

#include "core/interpreter/op_call.h"

namespace tenon {

// The eager interpreter has no state of its own: one serves all threads (tables are per thread).
class EagerInterpreter final : public Interpreter {
 public:
  void apply(const OpCall& call) override;
  bool host_value_known(const Tensor& tensor) override;
};

EagerInterpreter& eager_interpreter();

// dst[...] = cast(src[...]), same dims, any strides, on one device. Throws.
void copy_elements(Tensor& dst, const Tensor& src);
// A row-major copy of `tensor` on its device. Throws.
Tensor dense_on_device(const Tensor& tensor);

}  // namespace tenon
