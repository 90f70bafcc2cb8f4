// matmul: on cuBLASLt, and by a plain kernel for matrices that cuBLASLt does not take.
#pragma once

#include <vector>

#include "providers/cuda/elementwise/map.h"

namespace tenon::provider::cuda {

// Tail: element-wise kernels that change the stored product in place, in order.
class Tail {
 public:
  // Adds the step that `desc` describes: a unary or binary with DST as its source. `slot` is its first launch scalar;
  // `operand` is the number of its other tensor in the launch, or -1. If `stored` is not 0, it replaces the tensor's
  // dtype in the descriptor.
  Refusal add(ep_device& device, const ep_primitive_desc& desc, int32_t slot, int32_t operand, int32_t stored = 0);
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

// Adds the epilogues of `desc`, from number `first` on, to `tail`. If `stored` is given, operands have its dtypes in
// memory.
Refusal add_epilogues(ep_device& device, const ep_primitive_desc& desc, uint32_t first, Tail* tail,
                      const ep_primitive_desc* stored = nullptr);
// Adds operand number `bias` of `desc` to the result.
Refusal add_bias(ep_device& device, const ep_primitive_desc& desc, int32_t bias, Tail* tail,
                 const ep_primitive_desc* stored = nullptr);
// Why the epilogues from number `first` on cannot be a Tail. Pure.
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
