// Order: the order in which the elements of a result lie. Elementwise results keep the dense order of their inputs. So
// transposed and channels-last tensors stay so, and a chain of ops walks each of them as one axis. Results of ops that
// slide over channels (`order: channels` in ops.yaml) are channels-last where their input is. All others are row-major.
// Internal.
//
// The rule of elementwise ops is that of PyTorch's TensorIterator (aten/src/ATen/TensorIterator.cpp,
// reorder_dimensions): axes are sorted by the strides of the first input that tells them apart. Broadcast axes tell
// nothing, and axes that no input tells apart stay row-major. The rule of channels is that of suggest_memory_format
// (c10/core/MemoryFormat.h), for 1 to 3 spatial axes, but that a tensor which is row-major too, since its axes have
// length 1, tells nothing.
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

// The strides of a dense tensor of `dims`, to which the inputs (null where absent) broadcast, in their order.
Dims strides_in_order(std::span<const Tensor* const> inputs, const Dims& dims);

// The strides of a dense tensor of `dims`, which broadcast to those of `output`, in the order of `output`.
Dims strides_like(const TensorMeta& output, const Dims& dims);

// True if two dense tensors of `dims` with strides `a` and `b` have each element at the same offset.
bool same_layout(const Dims& dims, const Dims& a, const Dims& b);

// The strides of an input of `call` of `dims` when it is made dense: in the order of the output if the call keeps
// orders, else row-major.
Dims dense_strides(const OpCall& call, const Dims& dims, const TensorMeta& output);

}  // namespace tenon
