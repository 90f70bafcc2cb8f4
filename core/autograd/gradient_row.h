// GradientRow: the column `gradient` of core/ops/ops.yaml for one op. The rows are generated. Internal.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::autograd {

class Backward;

// The tensors of a call that a gradient is computed from, as bits.
struct Needs {
  uint32_t inputs = 0;
  uint32_t results = 0;
};

constexpr uint32_t kAllInputs = ~0u;

struct GradientRow {
  // Computes the gradients of the inputs that want one. Null: the op has no gradient.
  void (*function)(const Backward& backward) = nullptr;
  // The reason why the op has no gradient; empty if it has one.
  std::string_view none = {};
  // The tensors to save if input i wants a gradient. A single entry serves all inputs.
  Needs needs[3] = {};
  uint32_t needs_count = 0;
  bool attributes = false;  // true if the attribute struct is kept
  bool scalars = false;     // true if the launch scalars are kept
};

}  // namespace tenon::autograd
