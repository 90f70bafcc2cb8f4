#include "primitives/infer/convolution.h"

#include "primitives/infer/convolution-inl.h"

namespace tenon::infer {

Result<Dims> convolution(std::string_view op, const Dims& src, const Dims& weight, const Dims* bias,
                         const ep_convolution_attributes& attributes, std::span<const int64_t> output_padding) {
  return convolution<int64_t>(op, src, weight, bias, attributes, attributes.pad_low, attributes.pad_high,
                              output_padding);
}

Result<Dims> pooling(std::string_view op, const Dims& src, const ep_pooling_attributes& attributes, bool ceil_mode) {
  return pooling<int64_t>(op, src, attributes, attributes.pad_low, attributes.pad_high, ceil_mode);
}

void same_padding(int64_t dim, int64_t kernel, int64_t stride, int64_t dilation, bool lower, int64_t* out_low,
                  int64_t* out_high) {
  same_padding<int64_t>(dim, kernel, stride, dilation, lower, out_low, out_high);
}

}  // namespace tenon::infer
