// ConvolutionTail: the bias and the epilogues of a convolution, as element-wise kernels in place after its product. For
// narrow types they work on a result in f32 in the workspace, so that it is rounded once.
#pragma once

#include "providers/cuda/matmul/matmul.h"

namespace tenon::provider::cuda {

class ConvolutionTail {
 public:
  // Why the tail of `desc` cannot be made. Pure.
  static Refusal why_not(const ep_primitive_desc& desc);
  // With `channels_last`, a result in the workspace has its channels innermost; otherwise it is row-major.
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, bool channels_last, ConvolutionTail* out);

  // The bytes of workspace for a result in f32. 0: the product is written directly to operand 0.
  uint64_t workspace() const { return workspace_; }
  // The operand that the product writes: operand 0, or its f32 copy in the workspace.
  const ep_operand_desc& product() const { return desc_.operands[0]; }
  // Applies the tail to the product at address `product`.
  ep_status run(ep_stream* stream, const ep_launch& launch, ep_buffer product, ep_error** error) const;

  // The operand that product() will return. Pure; usable before a tail is made.
  static ep_operand_desc product_of(const ep_primitive_desc& desc, bool channels_last);

 private:
  ep_primitive_desc desc_{};  // the convolution with the product as operand 0, and a bias expanded to the result's dims
  ep_operand_desc dst_{};     // the given operand 0
  uint64_t workspace_ = 0;
  Tail tail_;
  Map narrowing_;
};

// Row-major strides, or strides with axis 1 innermost.
void set_dense_strides(ep_operand_desc* operand, bool channels_last);

// The bytes of one part of the workspace, rounded up so that the next part is aligned.
uint64_t part_bytes(int64_t elements, int32_t size);
inline ep_buffer behind(ep_buffer buffer, uint64_t bytes) {
  buffer.offset += bytes;
  return buffer;
}

}  // namespace tenon::provider::cuda
