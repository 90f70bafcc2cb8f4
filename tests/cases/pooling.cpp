#include <string_view>

#include "primitives/infer/convolution.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  Dims src;
  ep_pooling_attributes attributes;  // each case sets op
  bool ceil_mode;
};

ep_pooling_attributes window(int32_t rank, int64_t kernel, int64_t stride, int64_t dilation, int64_t low,
                             int64_t high) {
  ep_pooling_attributes attributes = {};
  attributes.spatial_rank = rank;
  for (int32_t i = 0; i < rank; ++i) {
    attributes.kernel[i] = kernel;
    attributes.stride[i] = stride;
    attributes.dilation[i] = dilation;
    attributes.pad_low[i] = low;
    attributes.pad_high[i] = high;
  }
  return attributes;
}

std::vector<Shape> shapes() {
  Shape uneven = {"uneven", {2, 3, 9, 14}, window(2, 3, 1, 1, 1, 0), false};
  uneven.attributes.kernel[1] = 2;
  uneven.attributes.stride[1] = 3;
  return {
      {"2x2", {2, 3, 8, 10}, window(2, 2, 2, 1, 0, 0), false},
      {"3x3_stride_2", {1, 5, 15, 15}, window(2, 3, 2, 1, 1, 1), false},
      {"3x3_stride_1", {1, 4, 9, 9}, window(2, 3, 1, 1, 1, 1), false},
      {"ceil", {1, 4, 9, 8}, window(2, 2, 2, 1, 0, 0), true},
      {"ceil_padded", {1, 4, 10, 10}, window(2, 3, 2, 1, 1, 1), true},
      {"dilated", {1, 3, 11, 11}, window(2, 3, 1, 2, 1, 1), false},
      {"3x3_channels", {2, 71, 7, 9}, window(2, 3, 2, 1, 1, 1), false},
      {"strips", {1, 17, 70, 67}, window(2, 3, 2, 2, 2, 1), false},
      {"global", {2, 7, 7, 7}, window(2, 7, 1, 1, 0, 0), false},
      uneven,
      {"1d", {2, 3, 31}, window(1, 4, 3, 1, 1, 2), false},
      {"3d", {1, 2, 5, 6, 7}, window(3, 2, 2, 1, 0, 1), false},
  };
}

struct Op {
  std::string_view name;
  int32_t op;
  bool indices;
  double p = 0;
};
constexpr Op ops[] = {
    {"max", EP_POOLING_MAX, false},         {"max_indices", EP_POOLING_MAX, true},
    {"average", EP_POOLING_AVERAGE, false}, {"average_include_pad", EP_POOLING_AVERAGE_INCLUDE_PAD, false},
    {"lp1", EP_POOLING_LP, false, 1},       {"lp2", EP_POOLING_LP, false, 2},
    {"lp3.5", EP_POOLING_LP, false, 3.5}};

Case pooling_case(const Shape& shape, const Op& op, DType dtype, bool channels_last, Fill fill,
                  std::string_view suffix) {
  std::string name = fmt::format("pooling/{}/{}", op.name, dtype_name(dtype));
  name.append("/").append(shape.name).append(suffix);
  Case made = {name, make_desc(EP_PRIMITIVE_pooling), {}, {}, {}, 0};
  made.desc.attributes.pooling = shape.attributes;
  made.desc.attributes.pooling.op = op.op;
  made.desc.attributes.pooling.p = op.p;
  const Dims dst = infer::pooling("pooling", shape.src, made.desc.attributes.pooling, shape.ceil_mode).value();
  const auto strides = [&](const Dims& dims) {
    return channels_last ? permuted_strides(dims, {0, 2, 3, 1}) : contiguous_strides(dims);
  };
  add_operand(made.desc, EP_ROLE_DST, dtype, dst, strides(dst));
  if (op.indices) add_operand(made.desc, EP_ROLE_DST_INDICES, DType::i64, dst, strides(dst));
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.src, strides(shape.src));
  made.values.assign(made.desc.operand_count, {fill, -8, 8});
  if (op.op != EP_POOLING_MAX) {
    set_tolerances(&made, [&](Tier tier) -> Tolerance {
      // The error of a power grows with the logarithm of its exponent: 128 steps are enough for exponents from 1/p on.
      const double powers = op.p == 0 ? 0 : 128 + 2 * beyond_full("pow", tier, dtype, 8).ulps;
      const double more = beyond_full("div", tier, dtype).ulps + powers;
      return {dtype_info(dtype).bits < 32 ? 1.0 : 2.0 + more, 64 + 8 * more, 0};
    });
  }
  return made;
}

}  // namespace

void add_pooling_cases(std::vector<Case>* cases) {
  for (const Op& op : ops) {
    for (const Shape& shape : shapes()) {
      cases->push_back(pooling_case(shape, op, DType::f32, false, Fill::RANDOM, ""));
      if (shape.src.rank() == 4) cases->push_back(pooling_case(shape, op, DType::f32, true, Fill::RANDOM, "_nhwc"));
      if (shape.name == "3x3_channels" && op.op == EP_POOLING_MAX) {
        cases->push_back(pooling_case(shape, op, DType::f32, true, Fill::SPECIAL, "_special_nhwc"));
        cases->push_back(pooling_case(shape, op, DType::f32, false, Fill::SPECIAL, "_special"));
        cases->push_back(pooling_case(shape, op, DType::f32, false, Fill::TIES, "_ties"));
      }
      if (shape.name != "3x3_stride_2") continue;
      for (DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32}) {
        if (op.op != EP_POOLING_MAX && !is_floating(dtype)) continue;
        cases->push_back(pooling_case(shape, op, dtype, false, Fill::RANDOM, ""));
      }
      if (op.op != EP_POOLING_MAX) continue;
      cases->push_back(pooling_case(shape, op, DType::f32, false, Fill::TIES, "_ties"));
      cases->push_back(pooling_case(shape, op, DType::f32, false, Fill::SPECIAL, "_special"));
    }
  }
}

}  // namespace tenon::cases
