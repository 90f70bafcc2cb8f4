// The kinds that the opencl provider computes.
#pragma once

#include "providers/opencl/primitive.h"

namespace tenon::provider::opencl {

#define TENON_OPENCL_KERNEL(name)                                                                                    \
  struct name {                                                                                                      \
    static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);           \
    static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& i); \
  };

TENON_OPENCL_KERNEL(Elementwise)  // fill, copy, unary, binary, ternary
TENON_OPENCL_KERNEL(Reduce)
TENON_OPENCL_KERNEL(ArgReduce)
TENON_OPENCL_KERNEL(Softmax)
TENON_OPENCL_KERNEL(Matmul)
TENON_OPENCL_KERNEL(Convolution)
TENON_OPENCL_KERNEL(Pooling)
TENON_OPENCL_KERNEL(LayerNorm)
TENON_OPENCL_KERNEL(BatchNorm)
TENON_OPENCL_KERNEL(Gather)
TENON_OPENCL_KERNEL(Parts)  // concat, split
TENON_OPENCL_KERNEL(Pad)

#undef TENON_OPENCL_KERNEL

}  // namespace tenon::provider::opencl
