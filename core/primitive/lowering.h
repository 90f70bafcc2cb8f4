// Lowering: how an op describes the one primitive that computes it. The op's `lower` fills a Lowering. From it the
// interpreter asks the device, creates the primitive and launches it, now and whenever the same signature comes again.
#pragma once

#include <array>
#include <cstdint>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon {

class Lowering {
 public:
  // The descriptor. The row of the op has set its kind; `lower` sets attributes and epilogues.
  ep_primitive_desc desc{};

  // Where operand i of the descriptor comes from.
  struct Source {
    int16_t input = -1;   // index into call.inputs, or
    int16_t output = -1;  // index into call.outputs, or neither: a scalar
  };
  std::array<Source, EP_MAX_OPERANDS> sources{};

  // The dtype each launch scalar is converted to; call.scalars has the values. 0: slot unused.
  std::array<DType, EP_MAX_SCALARS> scalar_dtypes{};

  // Adds an operand, in the order the kind wants (outputs first), with dims and strides already folded. No dim may be
  // 0.
  ep_operand_desc& output(int32_t role, int index, DType dtype, const Dims& dims, const Dims& strides) {
    return add(role, dtype, dims, strides, Source{-1, static_cast<int16_t>(index)});
  }
  ep_operand_desc& input(int32_t role, int index, DType dtype, const Dims& dims, const Dims& strides) {
    return add(role, dtype, dims, strides, Source{static_cast<int16_t>(index), -1});
  }
  // The operand is launch scalar 0, 1 or 2, by role (SRC, SRC_B, SRC_C).
  ep_operand_desc& scalar(int32_t role, DType dtype) {
    ep_operand_desc& operand = add(role, dtype, Dims(), Dims(), Source{});
    operand.flags |= EP_OPERAND_FLAG_SCALAR;
    scalar_dtypes[static_cast<size_t>(role - EP_ROLE_SRC)] = dtype;
    return operand;
  }

 private:
  ep_operand_desc& add(int32_t role, DType dtype, const Dims& dims, const Dims& strides, Source source) {
    ep_operand_desc& operand = desc.operands[desc.operand_count];
    sources[desc.operand_count++] = source;
    operand.role = role;
    operand.dtype = static_cast<int32_t>(dtype);
    operand.rank = dims.rank();
    for (int32_t axis = 0; axis < dims.rank(); ++axis) {
      operand.dims[axis] = dims[axis];
      operand.strides[axis] = strides[axis];
    }
    return operand;
  }
};

}  // namespace tenon
