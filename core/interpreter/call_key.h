// CallKey: the signature of a call as words, built on the stack. Internal.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "core/device/device_state.h"
#include "core/interpreter/opaque_operands.h"
#include "core/ops/dims_attribute.h"
#include "core/ops/op_call.h"

namespace tenon {

class CallKey {
 public:
  // The key of `call` on `device`: op, attributes, epilogues, precision, and each tensor's dtype, dims and, if it is
  // not contiguous, strides. It says which arguments are scalars, but not their values. On a device with layouts of its
  // own it also says which inputs are in such a layout.
  CallKey(const OpCall& call, const DeviceState* device) {
    uint64_t* at = words_;
    *at++ = uint64_t{call.op->id} | uint64_t{device->id} << 16 | uint64_t{call.inputs.size()} << 32 |
            uint64_t{call.outputs.size()} << 40 | uint64_t{call.scalars.size()} << 48 |
            static_cast<uint64_t>(call.precision) << 56;
    for (const Tensor* input : call.inputs) at = put(at, input);
    for (const Tensor& output : call.outputs) at = put(at, output.defined() ? &output : nullptr);
    if (device->layouts) [[unlikely]] {
      for (const Tensor* input : call.inputs) at = put_layout(at, input);
    }
    for (const Epilogue& epilogue : call.epilogues) {
      *at++ = uint64_t{epilogue.op->id} | uint64_t{static_cast<uint16_t>(epilogue.input)} << 16 |
              uint64_t{static_cast<uint16_t>(epilogue.scalar)} << 32 | uint64_t{1} << 63;
    }
    if (call.op->attribute_bytes != 0) {
      const size_t words = (call.op->attribute_bytes + 7) / 8;
      at[words - 1] = 0;
      std::memcpy(at, call.attributes, call.op->attribute_bytes);
      at += words;
    }
    size_ = static_cast<size_t>(at - words_);
  }

  const uint64_t* data() const { return words_; }
  size_t size() const { return size_; }

 private:
  // Each put() writes words from `at` on, and returns the end of them.
  static uint64_t* put(uint64_t* at, const Tensor* tensor) {
    if (tensor == nullptr) {
      *at = 0;
      return at + 1;
    }
    const TensorImpl& impl = *tensor->impl();
    *at++ = static_cast<uint64_t>(impl.dtype) | static_cast<uint64_t>(impl.dims.rank()) << 8 |
            static_cast<uint64_t>(impl.contiguous) << 16 | uint64_t{1} << 24;
    for (int64_t dim : impl.dims) *at++ = static_cast<uint64_t>(dim);
    if (impl.contiguous) return at;
    for (int64_t stride : impl.strides) *at++ = static_cast<uint64_t>(stride);
    return at;
  }

  static uint64_t* put_layout(uint64_t* at, const Tensor* tensor) {
    const std::optional<Layout> layout = tensor != nullptr ? layout_of(*tensor) : std::nullopt;
    if (!layout) {
      *at = 0;
      return at + 1;
    }
    *at++ = static_cast<uint64_t>(layout->token());
    *at++ = static_cast<uint64_t>(layout->dims().rank());
    for (int64_t dim : layout->dims()) *at++ = static_cast<uint64_t>(dim);
    return at;
  }

  // The words of the largest key: the most tensors, of the greatest rank, with strides and a layout, all epilogues, and
  // the longest attribute struct.
  static constexpr size_t kCapacity =
      1 + EP_MAX_OPERANDS * (3 + 3 * EP_MAX_RANK) + EP_MAX_EPILOGUES + kMaxAttributeBytes / 8;
  uint64_t words_[kCapacity];
  size_t size_;
};

}  // namespace tenon
