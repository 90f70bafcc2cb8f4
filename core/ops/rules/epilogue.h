// The epilogue of matmul and convolution: + residual, then an activation, computed before the result is stored.
#pragma once

#include <string_view>

#include "core/kernel/lowering.h"
#include "core/ops/op_call.h"
#include "core/tensor/tensor.h"

namespace tenon::ops {

constexpr int32_t kClampActivation = -1;

// An activation by name: none, clamp with bounds a and b, or a unary op of floats with parameters a and b.
struct Activation {
  int32_t id = 0;  // 0, an EP_UNARY_* id, or kClampActivation
  double a = 0;
  double b = 0;
};

// The first slot of the launch scalars of an activation.
constexpr size_t kActivationSlot = 4;

// The activation called `name`. Errors: invalid_argument if there is none.
Result<Activation> find_activation(std::string_view op, std::string_view name, double a, double b);
// Applies `activation` by ops of its own, for a result that was computed without an epilogue.
Tensor activate(const Tensor& x, const Activation& activation);

// Adds the epilogues to a descriptor whose operands are complete. `residual` is call.inputs[3], or null. It broadcasts
// to the result, whose dims are `dims` for the user; in the descriptor the result has the rank of operand 0.
void lower_epilogue(const OpCall& call, int32_t activation, Lowering* lowering, const Dims& residual_dims,
                    const Dims& residual_strides);

}  // namespace tenon::ops
