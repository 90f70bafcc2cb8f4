// matmul: on cuBLASLt, and by a kernel of our own for what that does not take.
#pragma once

#include <vector>

#include "providers/cuda/elementwise/map.h"

namespace tenon::provider::cuda {

// What is applied to the result after the product has been stored: element-wise kernels in place, in order.
class Tail {
 public:
  // Adds what `desc`, a unary or binary one with DST as its source, computes; `slot`: of its first launch scalar;
  // `operand`: index of the tensor it takes besides, in the launch, or -1.
  Refusal add(ep_device& device, const ep_primitive_desc& desc, int32_t slot, int32_t operand);
  bool empty() const { return steps_.empty(); }
  ep_status run(ep_stream* stream, const ep_launch& launch, const ep_operand_desc* operands, ep_error** error) const;

 private:
  struct Step {
    Map map;
    int32_t slot;
    int32_t operand;
  };
  std::vector<Step> steps_;
};

// Adds the epilogues of `desc` from number `first` on to `tail`.
Refusal add_epilogues(ep_device& device, const ep_primitive_desc& desc, uint32_t first, Tail* tail);
// Why epilogues from number `first` on cannot be applied. Pure.
Refusal why_no_epilogues(const ep_primitive_desc& desc, uint32_t first);

struct CublasLtMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct PlainMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
