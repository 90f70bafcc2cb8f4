// Convolution, transposed convolution and pooling with one to three spatial axes. The attributes are those of ep_api.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// SRC [n, c, d...], WEIGHT [o, c/groups, k...] (transposed: [c, o/groups, k...]), `bias` [o] or null. Returns [n, o,
// e...]. `output_padding` (transposed only, less than stride or dilation) is added to e; empty means 0.
Result<Dims> convolution(std::string_view op, const Dims& src, const Dims& weight, const Dims* bias,
                         const ep_convolution_attributes& attributes, std::span<const int64_t> output_padding = {});

// SRC [n, c, d...] returns [n, c, e...]. With `ceil_mode` a last window that would start in the high padding is
// dropped, as in PyTorch. Padding must be less than the (dilated) kernel.
Result<Dims> pooling(std::string_view op, const Dims& src, const ep_pooling_attributes& attributes, bool ceil_mode);

// ONNX's auto_pad: the padding of one axis for which the result has ceil(dim / stride) elements. If the padding is odd,
// the extra element is at the high end, or with `lower` at the low end.
void same_padding(int64_t dim, int64_t kernel, int64_t stride, int64_t dilation, bool lower, int64_t* out_low,
                  int64_t* out_high);

}  // namespace tenon::infer
