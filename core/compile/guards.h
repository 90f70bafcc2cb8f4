// Guards: what must be as it was when a function was recorded, for the recording to serve a call. Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tenon::lazy {

// A call as numbers: `fixed` must be those of the recording, `sizes` are the dims of all arguments, one after the
// other.
struct CallShape {
  std::vector<uint64_t> fixed;
  std::vector<int64_t> sizes;
};

// True if ops of the calling thread are remembered for gradients, or would be once a tensor wants one.
bool gradients_on();

// True if functions of the user see the gradient of `tensor`, a leaf. A backward inside the recording cannot hold them.
bool has_hooks(const Tensor& tensor);

// Errors: invalid_argument (an undefined argument, one without data).
CallShape shape_of(const std::string& name, const TensorList& inputs);
// "f32[2, 3], i64[2]".
std::string text_of(const TensorList& inputs);

// The slot of a captured leaf, or of the argument number `input`.
struct SlotRef {
  std::shared_ptr<autograd::GradientSlot> slot;
  size_t input = 0;

  // That of this call; null if the argument has none.
  std::shared_ptr<autograd::GradientSlot> of(const TensorList& inputs) const;
};

enum class GuardKind : uint8_t {
  apart,           // argument `input` and `tensor` share no storage
  together,        // argument `input` has the storage of `tensor`, and the geometry that it had
  wants_gradient,  // `tensor`, a capture, wants a gradient, or does not, and has hooks, or has none
  gradient,        // `slot` holds a gradient like `tensor`, or none
};

// A further condition of one recording, beside the numbers of a call.
struct Guard {
  GuardKind kind = GuardKind::apart;
  size_t input = 0;
  Tensor tensor = {};
  Tensor whole = {};  // of `gradient`: the gradient, of which `tensor` is what this rank holds
  std::vector<int64_t> geometry = {};
  bool wanted = false;
  bool hooked = false;
  SlotRef slot = {};

  bool holds(const TensorList& inputs) const;
};

}  // namespace tenon::lazy
