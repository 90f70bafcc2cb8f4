// Epilogues of matmul and convolution: lowers them from the record to the descriptor.
#pragma once

#include "core/ops/op_call.h"
#include "core/primitive/lowering.h"
#include "core/tensor/tensor.h"

namespace tenon::ops {

// The first slot of the launch scalars of epilogues.
constexpr int16_t kEpilogueSlot = 4;

// The number of launch scalars that `epilogue` reads.
int32_t scalars_of(const Epilogue& epilogue);

// Adds epilogues `from` and later to a descriptor whose other operands are complete. The tensor of epilogue i has the
// dims and strides that `addend(i)` returns: the dims of operand 0, broadcast.
struct Addend {
  Dims dims;
  Dims strides;
};
template <class F>
void lower_epilogues(const OpCall& call, size_t from, Lowering* lowering, F addend);

// Adds one epilogue; `other` is its tensor, or null.
void lower_epilogue(const Epilogue& epilogue, const Addend* other, Lowering* lowering);

template <class F>
void lower_epilogues(const OpCall& call, size_t from, Lowering* lowering, F addend) {
  for (size_t i = from; i < call.epilogues.size(); ++i) {
    if (call.epilogues[i].input < 0) {
      lower_epilogue(call.epilogues[i], nullptr, lowering);
      continue;
    }
    const Addend other = addend(i);
    lower_epilogue(call.epilogues[i], &other, lowering);
  }
}

}  // namespace tenon::ops
