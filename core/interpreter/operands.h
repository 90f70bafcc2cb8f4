// Operands: checks the tensors of a call before its launch: which overlap, and which must be copied first. Internal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/ops/op_call.h"
#include "core/vm/storage.h"

namespace tenon {

// True if the elements of `impl` fill its storage.
inline bool fills_storage(const TensorImpl& impl) {
  return impl.offset == 0 && static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.elements)) == impl.storage.bytes();
}

// The address of the first element of a tensor, on a device without layouts of its own.
inline ep_buffer address_at_hand(const TensorImpl& impl) {
  return impl.storage.at_hand()->block.at(
      impl.offset == 0 ? 0 : static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)));
}
// Like address_at_hand, on any device; opaque values are converted first. Throws.
inline ep_buffer address_of(const TensorImpl& impl) {
  const auto at = static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset));
  return value_or_throw(impl.storage.plain(Use::read))->block.at(at);
}

// True if both tensors are the same elements of one storage, in the same order.
inline bool same_elements(const TensorImpl& a, const TensorImpl& b) {
  return a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype && a.dims == b.dims &&
         a.strides == b.strides;
}

// True if the memory ranges of the two tensors overlap, or if they share a block of a device where a block that is
// written may hold no other operand (EP_POOL_FLAG_EXCLUSIVE).
bool overlap(const Tensor& a, const Tensor& b);

// True if the address of the first element of `tensor` is not a multiple of `alignment` bytes.
bool misaligned(const Tensor& tensor, int32_t alignment);

// An uninitialised tensor of `meta`, which is dense, whose first element is aligned.
Tensor aligned_tensor(DeviceState* device, const TensorMeta& meta, int32_t alignment);

// An uninitialised tensor with the dims and strides of `tensor` that starts at a multiple of `alignment` bytes.
Tensor aligned_like(const Tensor& tensor, int32_t alignment);
// Like aligned_like, with the elements of `tensor`. Uses the device's plain copy, which needs no alignment.
Tensor realigned(const Tensor& tensor, int32_t alignment);

// Copies the elements of `src`, which aligned_like(dst) made, to `dst`, also by the plain copy. Leaves the bytes
// between the elements of `dst` unchanged.
void copy_back(const Tensor& dst, const Tensor& src);

// A dense copy of `tensor` on its device, with `strides`; the report lists it as kDenseCopy. Throws.
Tensor dense_on_device(const Tensor& tensor, const Dims& strides);
// A row-major copy.
Tensor dense_on_device(const Tensor& tensor);

// Most calls have few tensors. So launches are compiled twice, with room for few tensors and with room for all, since
// initialising room for 16 costs as much as a small op.
inline constexpr size_t kFewOperands = 5;

// A call with a list of inputs of its own, so that some can be replaced by copies.
template <size_t kRoom>
struct OwnedInputs {
  explicit OwnedInputs(const OpCall& call) : call(call) {
    std::copy(call.inputs.begin(), call.inputs.end(), pointers);
    this->call.inputs = {pointers, call.inputs.size()};
  }
  void replace(size_t index, Tensor tensor) {
    stand_in(index, std::move(tensor));
    copied_bytes += static_cast<uint64_t>(tensors[index].bytes());
  }
  // Replaces input `index` by a tensor that is not a copy.
  void stand_in(size_t index, Tensor tensor) {
    tensors[index] = std::move(tensor);
    pointers[index] = &tensors[index];
  }
  Tensor tensors[kRoom];
  const Tensor* pointers[kRoom];
  OpCall call;
  uint64_t copied_bytes = 0;
};

// True if input `index` overlaps `output`, which the caller gave, in a way that the kind does not allow.
inline bool must_part(const OpCall& call, size_t index, const Tensor& output) {
  const Tensor* input = call.inputs[index];
  if (input == nullptr || input->impl()->storage != output.impl()->storage || !overlap(*input, output)) return false;
  return index != call.op->alias_input || !same_elements(*input->impl(), *output.impl());
}

// True if must_part() is true for some input and output.
inline bool has_overlaps(const OpCall& call) {
  for (const Tensor& output : call.outputs) {
    for (size_t i = 0; output.defined() && i < call.inputs.size(); ++i) {
      if (must_part(call, i, output)) return true;
    }
  }
  return false;
}

// Copies the inputs for which must_part() is true.
template <size_t kRoom>
void separate_overlaps(OwnedInputs<kRoom>* owned) {
  const OpCall& call = owned->call;
  for (const Tensor& output : call.outputs) {
    for (size_t i = 0; output.defined() && i < call.inputs.size(); ++i) {
      if (must_part(call, i, output)) owned->replace(i, dense_on_device(*owned->pointers[i]));
    }
  }
}

}  // namespace tenon
