// SavedTensor: a tensor that a node keeps for backward, or the packed form that a hook of the user made of it.
// Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/device/call_context.h"
#include "core/tensor/recording.h"
#include "core/tensor/tensor.h"

namespace tenon::autograd {

// Returns the tensor that was packed.
using Unpack = std::function<Tensor()>;

// The hook of a scope for tensors that are saved.
struct PackHook {
  std::function<Unpack(const Tensor&)> pack;
  bool takes_recorded = false;  // true if the hook takes values of a recording, which have no elements
};

using PackScope = ContextScope<&CallContext::pack_hook>;

class SavedTensor {
 public:
  // Keeps `tensor`. Its handle must not lead to a node that keeps this object. `saver`: the op or function that errors
  // name.
  void keep(Tensor tensor, std::string_view saver) {
    version_ = write_count(tensor);
    tensor_ = std::move(tensor);
    if (call_context.pack_hook != nullptr) [[unlikely]]
      pack(saver);
  }
  // `what`: "an argument", for errors. Throws invalid_argument, naming both ops, if the tensor was written since; or
  // the error that a hook throws.
  Tensor get(std::string_view saver, std::string_view what) const {
    if (packed_ != nullptr) [[unlikely]]
      return unpack(saver, what);
    if (write_count(tensor_) != version_) [[unlikely]]
      refuse(tensor_, saver, what);
    return tensor_;
  }
  void drop() {
    tensor_ = Tensor();
    packed_.reset();
  }

 private:
  struct Packed;
  struct End {
    void operator()(Packed* packed) const;
  };

  void pack(std::string_view saver);
  Tensor unpack(std::string_view saver, std::string_view what) const;
  [[noreturn]] void refuse(const Tensor& written, std::string_view saver, std::string_view what) const;

  Tensor tensor_;  // undefined if it is packed
  uint64_t version_ = 0;
  std::unique_ptr<Packed, End> packed_;
};

}  // namespace tenon::autograd
