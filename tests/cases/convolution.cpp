#include <string_view>

#include "primitives/infer/convolution.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  Dims src;
  Dims weight;
  ep_convolution_attributes attributes;
  bool bias;
  Dims output_padding;
  bool constant = false;  // the weight is constant, as in all cases with epilogues
};

ep_convolution_attributes window(int32_t rank, int64_t groups, int64_t stride, int64_t dilation, int64_t pad_low,
                                 int64_t pad_high, bool transposed = false) {
  ep_convolution_attributes attributes = {};
  attributes.spatial_rank = rank;
  attributes.transposed = transposed ? 1 : 0;
  attributes.groups = groups;
  for (int32_t i = 0; i < rank; ++i) {
    attributes.stride[i] = stride;
    attributes.dilation[i] = dilation;
    attributes.pad_low[i] = pad_low;
    attributes.pad_high[i] = pad_high;
  }
  return attributes;
}

std::vector<Shape> shapes() {
  Shape uneven = {"uneven", {2, 3, 9, 14}, {5, 3, 3, 2}, window(2, 1, 1, 1, 1, 0), true, {}};
  uneven.attributes.stride[1] = 3;
  uneven.attributes.pad_high[0] = 2;
  return {
      {"1x1", {1, 8, 7, 7}, {16, 8, 1, 1}, window(2, 1, 1, 1, 0, 0), false, {}},
      {"1x1_stride_2", {2, 8, 9, 9}, {4, 8, 1, 1}, window(2, 1, 2, 1, 0, 0), true, {}},
      {"3x3", {2, 5, 11, 13}, {7, 5, 3, 3}, window(2, 1, 1, 1, 1, 1), true, {}},
      {"3x3_stride_2", {1, 4, 14, 14}, {8, 4, 3, 3}, window(2, 1, 2, 1, 1, 1), true, {}},
      {"7x7_stride_2", {1, 3, 23, 23}, {8, 3, 7, 7}, window(2, 1, 2, 1, 3, 3), false, {}},
      {"dilated", {1, 3, 13, 13}, {4, 3, 3, 3}, window(2, 1, 1, 2, 2, 2), false, {}},
      {"grouped", {1, 6, 9, 9}, {4, 3, 3, 3}, window(2, 2, 1, 1, 1, 1), true, {}},
      {"depthwise", {1, 8, 10, 10}, {8, 1, 3, 3}, window(2, 8, 1, 1, 1, 1), true, {}},
      {"1x1_panels", {2, 40, 15, 15}, {72, 40, 1, 1}, window(2, 1, 1, 1, 0, 0), true, {}},
      {"depthwise_stride_2", {2, 40, 13, 17}, {40, 1, 3, 3}, window(2, 40, 2, 1, 1, 1), true, {}},
      {"depthwise_wide", {1, 3, 11, 45}, {3, 1, 3, 3}, window(2, 3, 1, 1, 1, 1), true, {}},
      {"depthwise_wide_stride_2", {2, 3, 19, 71}, {3, 1, 3, 3}, window(2, 3, 2, 1, 1, 1), true, {}},
      {"depthwise_5x5_stride_2", {1, 2, 16, 75}, {2, 1, 5, 5}, window(2, 2, 2, 1, 2, 1), true, {}},
      {"depthwise_7x7", {1, 3, 95, 50}, {3, 1, 7, 7}, window(2, 3, 1, 1, 3, 3), true, {}},
      {"depthwise_dilated", {1, 4, 21, 34}, {4, 1, 3, 3}, window(2, 4, 1, 2, 2, 2), true, {}},
      {"depthwise_1d", {2, 5, 83}, {5, 1, 5}, window(1, 5, 1, 2, 3, 4), true, {}},
      {"3x3_squares", {2, 20, 9, 14}, {37, 20, 3, 3}, window(2, 1, 1, 1, 1, 1), true, {}, true},
      {"wide_channels", {1, 64, 5, 5}, {32, 64, 3, 3}, window(2, 1, 1, 1, 1, 1), true, {}},
      uneven,
      {"1d", {2, 4, 37}, {6, 4, 5}, window(1, 1, 2, 1, 2, 2), true, {}},
      {"1d_lines", {2, 5, 131}, {11, 5, 3}, window(1, 1, 1, 1, 1, 1), true, {}},
      {"1d_lines_dilated", {1, 3, 70}, {9, 3, 4}, window(1, 1, 1, 3, 12, 5), true, {}},
      {"3d", {1, 3, 5, 6, 7}, {4, 3, 2, 3, 3}, window(3, 1, 1, 1, 1, 0), true, {}},
      {"transposed", {1, 4, 7, 7}, {4, 6, 3, 3}, window(2, 1, 2, 1, 1, 1, true), true, {1, 1}},
      {"transposed_apart", {2, 20, 5, 17}, {20, 41, 2, 2}, window(2, 1, 2, 1, 0, 0, true), true, {}, true},
      {"transposed_grouped", {1, 4, 5, 5}, {4, 3, 2, 2}, window(2, 2, 2, 1, 0, 0, true), false, {}},
      {"transposed_1d", {2, 3, 11}, {3, 5, 4}, window(1, 1, 3, 1, 1, 2, true), true, {}},
  };
}

Case convolution_case(const Shape& shape, DType in, DType out, bool channels_last, std::string_view suffix) {
  std::string name = fmt::format("convolution/{}", dtype_name(in));
  if (in != out) name += fmt::format("_to_{}", dtype_name(out));
  name.append("/").append(shape.name).append(suffix);
  Case made = {name, make_desc(EP_PRIMITIVE_convolution), {}, {}, {}, 0};
  made.desc.attributes.convolution = shape.attributes;
  const auto dst = infer::convolution("convolution", shape.src, shape.weight, nullptr, shape.attributes,
                                      {shape.output_padding.data(), shape.output_padding.size()});
  const auto strides = [&](const Dims& dims) {
    return channels_last ? permuted_strides(dims, {0, 2, 3, 1}) : contiguous_strides(dims);
  };
  add_operand(made.desc, EP_ROLE_DST, out, dst.value(), strides(dst.value()));
  add_operand(made.desc, EP_ROLE_SRC, in, shape.src, strides(shape.src));
  add_operand(made.desc, EP_ROLE_WEIGHT, in, shape.weight);
  if (shape.bias) add_operand(made.desc, EP_ROLE_BIAS, out, {dst.value()[1]});
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -1, 1});
  double terms = 1;
  for (int32_t axis = 1; axis < shape.weight.rank(); ++axis) terms *= static_cast<double>(shape.weight[axis]);
  if (shape.attributes.transposed) terms *= static_cast<double>(shape.weight[0]) / static_cast<double>(shape.weight[1]);
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("product", tier, out).ulps;
    return {dtype_info(out).bits < 32 ? 1.0 : 2.0, terms * (1 + more) + 2, 0};
  });
  return made;
}

// Convolutions with epilogues, and with a constant weight.
void add_fused_cases(const Shape& shape, bool channels_last, std::vector<Case>* cases) {
  const std::string order = channels_last ? "_nhwc" : "";
  const auto made = [&](const char* suffix) {
    Case made = convolution_case(shape, DType::f32, DType::f32, channels_last, suffix + order);
    if (shape.constant) made.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    return made;
  };
  Case relu = made("_relu");
  relu.desc.epilogues[relu.desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
  cases->push_back(relu);

  Case residual = made("_add_relu");
  residual.desc.epilogues[residual.desc.epilogue_count++] = {2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0};
  residual.desc.epilogues[residual.desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
  const ep_operand_desc dst = residual.desc.operands[0];
  residual.desc.operands[residual.desc.operand_count++] = dst;
  residual.desc.operands[residual.desc.operand_count - 1].role = EP_ROLE_EPILOGUE_0;
  residual.values.push_back({});
  cases->push_back(residual);

  Case clamped = made("_clamp");
  clamped.desc.epilogues[clamped.desc.epilogue_count++] = {2, EP_BINARY_maximum, 0, 4};
  clamped.desc.epilogues[clamped.desc.epilogue_count++] = {2, EP_BINARY_minimum, 0, 5};
  clamped.scalars = std::vector<ep_scalar>(4, make_scalar(DType::f32, 0));
  clamped.scalars.push_back(make_scalar(DType::f32, -0.25));
  clamped.scalars.push_back(make_scalar(DType::f32, 0.5));
  cases->push_back(clamped);

  Case constant = made("_constant_weight");
  constant.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  cases->push_back(constant);
}

}  // namespace

void add_convolution_cases(std::vector<Case>* cases) {
  for (const Shape& shape : shapes()) {
    cases->push_back(convolution_case(shape, DType::f32, DType::f32, false, ""));
    if (shape.src.rank() == 4) cases->push_back(convolution_case(shape, DType::f32, DType::f32, true, "_nhwc"));
    const bool fused = shape.name == "1x1_panels" || shape.name == "3x3" || shape.name == "depthwise" || shape.constant;
    if (fused) add_fused_cases(shape, true, cases);
    if (shape.name != "3x3" && shape.name != "depthwise" && shape.name != "transposed") continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(convolution_case(shape, dtype, dtype, false, ""));
    }
    cases->push_back(convolution_case(shape, DType::bf16, DType::f32, false, ""));

    add_fused_cases(shape, false, cases);
    if (shape.name == "3x3") {
      Case denormal = convolution_case(shape, DType::f32, DType::f32, false, "");
      make_denormal(&denormal, denormal.tolerance.epsilons - 2);
      cases->push_back(denormal);
    }
  }
}

}  // namespace tenon::cases
