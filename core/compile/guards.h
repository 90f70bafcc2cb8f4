// Guards: the conditions under which a recording serves a call. Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tenon::compilation {

// A call as numbers: `fixed` must equal the recording's; `sizes` are the dims of all arguments, one after another.
struct CallShape {
  std::vector<uint64_t> fixed;
  std::vector<int64_t> sizes;
};

// True if ops of the calling thread are recorded for gradients, or would be if a tensor wanted one.
bool gradients_on();

// True if hooks of the user see the gradient of `tensor`, a leaf. A backward inside a recording cannot call them.
bool has_hooks(const Tensor& tensor);

// Errors: invalid_argument for an argument that is undefined or has no data.
CallShape shape_of(const std::string& name, const TensorList& inputs);
// "f32[2, 3], i64[2]".
std::string text_of(const TensorList& inputs);

// The gradient slot of a captured leaf, or of argument `input`.
struct SlotRef {
  std::shared_ptr<autograd::GradientSlot> slot;
  size_t input = 0;

  // The slot for this call; null if the argument has none.
  std::shared_ptr<autograd::GradientSlot> of(const TensorList& inputs) const;
};

enum class GuardKind : uint8_t {
  apart,           // argument `input` and `tensor` share no storage
  together,        // argument `input` has the storage and the recorded geometry of `tensor`
  wants_gradient,  // the capture `tensor` requires a gradient and has hooks exactly as it did when recorded
  gradient,        // `slot` holds a gradient like `tensor`, or none if none was recorded
};

// A condition of one recording, in addition to the numbers of a call.
struct Guard {
  GuardKind kind = GuardKind::apart;
  size_t input = 0;
  Tensor tensor = {};
  Tensor whole = {};  // for `gradient`: the whole gradient; `tensor` is this rank's part
  std::vector<int64_t> geometry = {};
  bool wanted = false;
  bool hooked = false;
  SlotRef slot = {};

  bool holds(const TensorList& inputs) const;
};

}  // namespace tenon::compilation
