// Order: the order in which the elements of a result lie. Elementwise results keep the dense order of their inputs. So
// transposed and channels-last tensors stay so, and a chain of ops walks each of them as one axis. Internal.
//
// The rule is that of PyTorch's TensorIterator (aten/src/ATen/TensorIterator.cpp, reorder_dimensions): axes are sorted
// by the strides of the first input that tells them apart. Broadcast axes tell nothing, and axes that no input tells
// apart stay row-major.
#pragma once

#include <span>

#include "core/ops/op_call.h"

namespace tenon {

// True if results of `call` keep the order of their inputs.
bool keeps_order(const OpCall& call);

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
