// Lowering: describes the one primitive that computes an op. The op's `lower` fills a Lowering. With it the interpreter
// asks the device, creates the primitive and launches it, now and for each later call with the same signature.
#pragma once

#include <array>
#include <cstdint>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon {

class Lowering {
 public:
  // The descriptor. Its kind comes from the op's row; `lower` sets attributes and epilogues.
  ep_primitive_desc desc{};

  // The source of operand i of the descriptor.
  struct Source {
    int16_t input = -1;   // index into call.inputs, or -1
    int16_t output = -1;  // index into call.outputs, or -1; if both are -1 the operand is a scalar
  };
  std::array<Source, EP_MAX_OPERANDS> sources{};

  // The dtype each launch scalar is converted to; call.scalars has the values. 0: slot unused.
  std::array<DType, EP_MAX_SCALARS> scalar_dtypes{};

  // Adds an operand, in the order of the kind (outputs first), with folded dims and strides. No dim may be 0.
  ep_operand_desc& output(int32_t role, int index, DType dtype, const Dims& dims, const Dims& strides) {
    return add(role, dtype, dims, strides, Source{-1, static_cast<int16_t>(index)});
  }
  ep_operand_desc& input(int32_t role, int index, DType dtype, const Dims& dims, const Dims& strides) {
    return add(role, dtype, dims, strides, Source{static_cast<int16_t>(index), -1});
  }
  // Adds launch scalar 0, 1 or 2 as an operand; the role (SRC, SRC_B, SRC_C) selects it.
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
