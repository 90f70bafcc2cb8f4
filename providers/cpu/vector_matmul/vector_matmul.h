// matmul of a matrix and a vector, over f64, f32, bf16, f16 and integers, which are computed modulo their range.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// One row times a matrix, or a matrix times one column or a few; also in batches. Constant f32 matrices are left to
// packed kernels.
struct VectorMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
