// Scales and zero points of records: shared checks and lowering for rules and functors.
#pragma once

#include <string_view>

#include "core/ops/op_call.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"

namespace tenon::ops {

// How a scale or zero point with a given number of axes is spread over an operand of `rank` axes.
enum class Spread { one, along_axis, in_blocks };
inline Spread spread_of(int32_t parameter_rank, int32_t rank, int64_t block) {
  if (parameter_rank == 0) return Spread::one;
  return parameter_rank == 1 && (block == 0 || rank > 1) ? Spread::along_axis : Spread::in_blocks;
}

// Ok if input `index`, a scale or zero point called `name`, fits an operand of `dims`, or is absent.
template <class Call>
Status require_parameter(const Call& call, size_t index, std::string_view name,
                         const BasicDims<typename Call::Size>& dims, int32_t axis, int64_t block) {
  if (call.inputs[index] == nullptr) return {};
  const auto& given = call.inputs[index]->dims();
  const Spread spread = spread_of(given.rank(), dims.rank(), block);
  if (spread == Spread::one) return {};
  TENON_RETURN_IF_ERROR(require_axis(call, axis, dims.rank()));
  if (spread == Spread::along_axis) return require_shape(call, index, name, {dims[axis]});
  if (block < 1) {
    return infer::wrong(call.op->name, "{} has shape {}; without blocks it has at most one axis.", name, given);
  }
  auto wanted = dims;
  wanted[axis] = ceil_div(dims[axis], typename Call::Size(block));
  return require_shape(call, index, name, wanted);
}

// Ok if scale (f32) and zero point (`dtype`) of a quantised operand have these dtypes, or are absent.
template <class Call>
Status require_parameter_dtypes(const Call& call, size_t scale, size_t zero_point, DType dtype) {
  if (call.inputs[scale] != nullptr) TENON_RETURN_IF_ERROR(require_dtype(call, scale, "a scale", DType::f32));
  if (call.inputs[zero_point] == nullptr) return {};
  return require_dtype(call, zero_point, "a zero point", dtype);
}

// Lowers input `index`, a scale or zero point of an operand of `rank` axes, if given. It varies along `axis` of the
// operand, or has one number per `block` indices.
void lower_parameter(const OpCall& call, int index, int32_t role, int32_t rank, int32_t axis, int64_t block,
                     ep_quantisation* how, Lowering* lowering);

}  // namespace tenon::ops
