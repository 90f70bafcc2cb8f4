// GradientRow: what the column `gradient` of core/ops/ops.yaml says of one op. The rows are generated. Internal.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::autograd {

class Backward;

// Tensors of a call, as bits: what a gradient is computed from.
struct Needs {
  uint32_t inputs = 0;
  uint32_t results = 0;
};

constexpr uint32_t kAllInputs = ~0u;

struct GradientRow {
  // Gives the gradients of the inputs that want one. Null: the op has no gradient.
  void (*function)(const Backward& backward) = nullptr;
  // Why it has none; empty where it has.
  std::string_view none = {};
  // What is saved if input i wants a gradient. One entry only: the same for all inputs.
  Needs needs[3] = {};
  uint32_t needs_count = 0;
  bool attributes = false;  // whether the attribute struct is kept
  bool scalars = false;     // whether the launch scalars are kept
};

}  // namespace tenon::autograd
