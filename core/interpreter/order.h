// Order: chooses the strides of results. Results of element-wise ops keep the dense order of their inputs. So
// transposed and channels-last tensors keep their order, and a chain of ops can treat each of them as one axis. Results
// of ops that slide over channels (`order: channels` in ops.yaml) are channels-last if their input is. All others are
// row-major. Internal.
//
// The rule of element-wise ops comes from PyTorch's TensorIterator (aten/src/ATen/TensorIterator.cpp,
// reorder_dimensions): axes are sorted by the strides of the first input that distinguishes them. Broadcast axes do not
// count, and axes that no input distinguishes stay row-major. The rule of channels comes from suggest_memory_format
// (c10/core/MemoryFormat.h), for 1 to 3 spatial axes. One difference: a tensor that is also row-major, since its axes
// have length 1, is ignored.
#pragma once

#include <span>

#include "core/ops/op_call.h"

namespace tenon {

// True if results of `call` keep the order of their inputs.
bool keeps_order(const OpCall& call);

// The strides of the new result of `call`, which has `dims`.
Dims result_strides(const OpCall& call, const Dims& dims);

// The strides of a dense tensor of `dims` [n, c, d..] with channels innermost.
Dims channels_last_strides(const Dims& dims);

// The strides of a dense tensor of `dims` in the order of the inputs (null where absent), which broadcast to `dims`.
Dims strides_in_order(std::span<const Tensor* const> inputs, const Dims& dims);

// The strides of a dense tensor of `dims`, which broadcast to the dims of `output`, in the order of `output`.
Dims strides_like(const TensorMeta& output, const Dims& dims);

// True if two dense tensors of `dims`, with strides `a` and `b`, have each element at the same offset.
bool same_layout(const Dims& dims, const Dims& a, const Dims& b);

// The strides of a dense copy of an input of `call` with `dims`: in the order of the output if the call keeps orders,
// else row-major.
Dims dense_strides(const OpCall& call, const Dims& dims, const TensorMeta& output);

}  // namespace tenon
