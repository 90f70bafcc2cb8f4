// Cases of the kinds for training: the weight gradient of convolution, the backward kinds of pooling and norms, and
// batch_norm over its own batch.
#include <string_view>

#include "primitives/infer/convolution.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr DType floats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

DType statistics_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Results are sums with an error of at most `epsilons`, rounded once.
void set_sum_tolerance(Case* test, DType dtype, double epsilons) {
  set_tolerances(test, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("product", tier, dtype).ulps + beyond_full("div", tier, dtype).ulps;
    return {dtype_info(dtype).bits < 32 ? 1.0 : 2.0, epsilons * (1 + more), 0};
  });
}

// --- convolution_weight ---

struct ConvolutionShape {
  std::string_view name;
  Dims src;
  Dims weight;
  int64_t groups, stride, dilation, low, high;
};

Case convolution_weight_case(const ConvolutionShape& shape, DType dtype, bool channels_last) {
  Case made = {fmt::format("convolution_weight/{}/{}{}", dtype_name(dtype), shape.name, channels_last ? "_nhwc" : ""),
               make_desc(EP_PRIMITIVE_convolution_weight),
               {},
               {},
               {},
               0};
  ep_convolution_attributes forward = {};
  ep_convolution_weight_attributes& at = made.desc.attributes.convolution_weight;
  forward.spatial_rank = at.spatial_rank = shape.src.rank() - 2;
  forward.groups = at.groups = shape.groups;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    forward.stride[i] = at.stride[i] = shape.stride;
    forward.dilation[i] = at.dilation[i] = shape.dilation;
    forward.pad_low[i] = at.pad_low[i] = shape.low;
    forward.pad_high[i] = at.pad_high[i] = shape.high;
  }
  const Dims dst = infer::convolution("convolution", shape.src, shape.weight, nullptr, forward, {}).value();
  const auto strides = [&](const Dims& dims) {
    return channels_last ? permuted_strides(dims, {0, 2, 3, 1}) : contiguous_strides(dims);
  };
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.weight, strides(shape.weight));
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.src, strides(shape.src));
  add_operand(made.desc, EP_ROLE_GRADIENT, dtype, dst, strides(dst));
  made.values.assign(3, {Fill::RANDOM, -1, 1});
  set_sum_tolerance(&made, dtype, static_cast<double>(element_count(dst)) / static_cast<double>(dst[1]) + 2);
  return made;
}

void add_convolution_weights(std::vector<Case>* cases) {
  const ConvolutionShape shapes[] = {
      {"1x1", {1, 8, 7, 7}, {16, 8, 1, 1}, 1, 1, 1, 0, 0},
      {"3x3", {2, 5, 11, 13}, {7, 5, 3, 3}, 1, 1, 1, 1, 1},
      {"3x3_stride_2", {2, 4, 14, 14}, {8, 4, 3, 3}, 1, 2, 1, 1, 1},
      {"rest", {2, 3, 10, 9}, {4, 3, 3, 3}, 1, 3, 1, 1, 0},
      {"dilated", {1, 3, 13, 13}, {4, 3, 3, 3}, 1, 1, 2, 2, 2},
      {"16_at_a_time", {3, 18, 9, 10}, {40, 18, 3, 3}, 1, 1, 1, 1, 1},
      {"16_stride_2", {2, 3, 21, 22}, {32, 3, 7, 7}, 1, 2, 1, 3, 3},
      {"many_channels", {1, 5, 6, 6}, {270, 5, 1, 1}, 1, 1, 1, 0, 0},
      {"grouped", {2, 8, 9, 9}, {8, 4, 3, 3}, 2, 1, 1, 1, 1},
      {"depthwise", {2, 8, 10, 10}, {8, 1, 3, 3}, 8, 1, 1, 1, 1},
      {"1d", {2, 4, 37}, {6, 4, 5}, 1, 2, 1, 2, 2},
      {"3d", {1, 3, 5, 6, 7}, {4, 3, 2, 3, 3}, 1, 1, 1, 1, 0},
  };
  for (const ConvolutionShape& shape : shapes) {
    for (DType dtype : floats) {
      if (dtype == DType::f32 || shape.name == "3x3_stride_2") {
        cases->push_back(convolution_weight_case(shape, dtype, false));
      }
    }
    if (shape.src.rank() == 4) cases->push_back(convolution_weight_case(shape, DType::f32, true));
  }
}

// --- pooling_backward ---

struct PoolingShape {
  std::string_view name;
  Dims dst;
  Dims kernel;
  Dims stride;
  Dims pad;
  int64_t dilation = 1;
};

Case pooling_backward_case(const PoolingShape& shape, int32_t op, DType dtype, bool channels_last) {
  constexpr std::string_view names[] = {"", "max", "average", "average_include_pad"};
  Case made = {fmt::format("pooling_backward/{}/{}/{}{}", names[op], dtype_name(dtype), shape.name,
                           channels_last ? "_nhwc" : ""),
               make_desc(EP_PRIMITIVE_pooling_backward),
               {},
               {},
               {},
               0};
  ep_pooling_attributes& at = made.desc.attributes.pooling_backward;
  at.op = op;
  at.spatial_rank = shape.kernel.rank();
  int64_t plane = 1;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    at.kernel[i] = shape.kernel[i];
    at.stride[i] = shape.stride[i];
    at.dilation[i] = shape.dilation;
    at.pad_low[i] = at.pad_high[i] = shape.pad[i];
    plane *= shape.dst[i + 2];
  }
  const Dims result = infer::pooling("pooling", shape.dst, at, false).value();
  const auto strides = [&](const Dims& dims) {
    return channels_last ? permuted_strides(dims, {0, 2, 3, 1}) : contiguous_strides(dims);
  };
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dst, strides(shape.dst));
  if (op == EP_POOLING_MAX) add_operand(made.desc, EP_ROLE_INDICES, DType::i64, result, strides(result));
  add_operand(made.desc, EP_ROLE_GRADIENT, dtype, result, strides(result));
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  if (op == EP_POOLING_MAX) made.values[1] = {Fill::INDEX, 0, static_cast<double>(plane - 1)};
  set_sum_tolerance(&made, dtype, 64);
  return made;
}

void add_pooling_backwards(std::vector<Case>* cases) {
  // Each window covers the whole plane, so every index is an index of its window.
  const PoolingShape whole[] = {
      {"all", {2, 3, 5, 6}, {9, 11}, {1, 1}, {4, 5}},
      {"all_stride_2", {1, 4, 5, 6}, {9, 11}, {2, 3}, {4, 5}},
      {"global", {2, 7, 7, 7}, {7, 7}, {1, 1}, {0, 0}},
      {"all_1d", {2, 3, 17}, {33}, {2}, {16}},
      {"all_3d", {1, 2, 3, 2, 4}, {5, 3, 7}, {1, 1, 2}, {2, 1, 3}},
  };
  const PoolingShape windows[] = {
      {"2x2", {2, 3, 8, 10}, {2, 2}, {2, 2}, {0, 0}},
      {"3x3_stride_2", {1, 5, 15, 15}, {3, 3}, {2, 2}, {1, 1}},
      {"3x3_stride_1", {1, 4, 9, 9}, {3, 3}, {1, 1}, {1, 1}},
      {"gaps", {1, 4, 11, 11}, {2, 2}, {3, 3}, {0, 0}},
      {"dilated", {1, 3, 11, 11}, {3, 3}, {1, 1}, {1, 1}, 2},
      {"1d", {2, 3, 31}, {4}, {3}, {1}},
      {"3d", {1, 2, 5, 6, 7}, {2, 2, 2}, {2, 2, 2}, {0, 1, 0}},
  };
  const auto add = [&](const PoolingShape& shape, int32_t op, std::string_view in_all_types) {
    for (DType dtype : floats) {
      if (dtype == DType::f32 || shape.name == in_all_types) {
        cases->push_back(pooling_backward_case(shape, op, dtype, false));
      }
    }
    if (shape.dst.rank() == 4) cases->push_back(pooling_backward_case(shape, op, DType::f32, true));
  };
  for (const PoolingShape& shape : whole) add(shape, EP_POOLING_MAX, "all");
  for (const PoolingShape& shape : windows) {
    add(shape, EP_POOLING_AVERAGE, "3x3_stride_2");
    add(shape, EP_POOLING_AVERAGE_INCLUDE_PAD, "3x3_stride_2");
  }
  for (int64_t beyond : {30, -1}) {
    Case fault = pooling_backward_case(whole[0], EP_POOLING_MAX, DType::f32, false);
    fault.name += beyond > 0 ? "_above" : "_below";
    fault.values[1] = {Fill::INDEX, beyond > 0 ? 0.0 : -1.0, beyond > 0 ? 30.0 : 29.0};
    fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
    cases->push_back(fault);
  }
}

// --- norms ---

struct NormShape {
  std::string_view name;
  Dims dims;
  int32_t axis;
};

std::string norm_name(std::string_view kind, bool affine, DType dtype, std::string_view layout) {
  return fmt::format("{}/{}/{}/{}", kind, affine ? "affine" : "plain", dtype_name(dtype), layout);
}

// Adds SRC, the optional SCALE, MEAN, INV_STD and GRADIENT of a backward kind. `made` already has the results.
void add_backward_inputs(Case* made, const NormShape& shape, DType dtype, const Dims& strides, bool affine,
                         const Dims& parameters, const Dims& statistics) {
  add_operand(made->desc, EP_ROLE_SRC, dtype, shape.dims, strides);
  if (affine) add_operand(made->desc, EP_ROLE_SCALE, dtype, parameters);
  add_operand(made->desc, EP_ROLE_MEAN, statistics_of(dtype), statistics);
  add_operand(made->desc, EP_ROLE_INV_STD, statistics_of(dtype), statistics);
  add_operand(made->desc, EP_ROLE_GRADIENT, dtype, shape.dims, strides);
  made->values.assign(made->desc.operand_count, {Fill::RANDOM, -2, 2});
  made->values[made->values.size() - 2] = {Fill::RANDOM, 0.25, 2};
  // A normalised element is at most 8, a product with the scaled gradient at most 32, DST at most 2 * (8 + 8 * 32).
  const auto elements = static_cast<double>(element_count(shape.dims));
  set_sum_tolerance(made, dtype, 4096 + 64 * elements / static_cast<double>(element_count(parameters)));
}

Case layer_norm_backward_case(const NormShape& shape, DType dtype, bool affine, const Dims& strides,
                              std::string_view layout) {
  Case made = {norm_name("layer_norm_backward", affine, dtype, layout),
               make_desc(EP_PRIMITIVE_layer_norm_backward),
               {},
               {},
               {},
               0};
  made.desc.attributes.layer_norm_backward.axis = shape.axis;
  Dims rows = shape.dims;
  Dims normalised;
  for (int32_t axis = shape.axis; axis < shape.dims.rank(); ++axis) {
    rows[axis] = 1;
    normalised.push_back(shape.dims[axis]);
  }
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
  add_operand(made.desc, EP_ROLE_SCALE_GRADIENT, dtype, normalised);
  add_operand(made.desc, EP_ROLE_SHIFT_GRADIENT, dtype, normalised);
  add_backward_inputs(&made, shape, dtype, strides, affine, normalised, rows);
  return made;
}

Case batch_norm_case(const NormShape& shape, bool backward, DType dtype, bool affine, const Dims& strides,
                     std::string_view layout) {
  Case made = {norm_name(backward ? "batch_norm_backward" : "batch_norm_training", affine, dtype, layout),
               make_desc(backward ? EP_PRIMITIVE_batch_norm_backward : EP_PRIMITIVE_batch_norm_training),
               {},
               {},
               {},
               0};
  const Dims list = {shape.dims[shape.axis]};
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
  if (backward) {
    made.desc.attributes.batch_norm_backward.axis = shape.axis;
    add_operand(made.desc, EP_ROLE_SCALE_GRADIENT, dtype, list);
    add_operand(made.desc, EP_ROLE_SHIFT_GRADIENT, dtype, list);
    add_backward_inputs(&made, shape, dtype, strides, affine, list, list);
    return made;
  }
  made.desc.attributes.batch_norm_training.axis = shape.axis;
  add_operand(made.desc, EP_ROLE_MEAN, statistics_of(dtype), list);
  add_operand(made.desc, EP_ROLE_INV_STD, statistics_of(dtype), list);
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, strides);
  if (affine) add_operand(made.desc, EP_ROLE_SCALE, dtype, list);
  if (affine) add_operand(made.desc, EP_ROLE_SHIFT, dtype, list);
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  made.scalars = {make_scalar(dtype, 0.0009765625)};
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("sqrt", tier, dtype).ulps + beyond_full("div", tier, dtype).ulps;
    return {dtype_info(dtype).bits < 32 ? 1.0 : 8.0 + more, 64 + 8 * more, 0};
  });
  return made;
}

void add_norm_gradients(std::vector<Case>* cases) {
  const NormShape layers[] = {
      {"last", {37, 67}, 1},      {"wide", {5, 3001}, 1},           {"narrow", {129, 3}, 1},
      {"last_two", {5, 7, 9}, 1}, {"last_of_three", {3, 5, 64}, 2}, {"all", {6, 35}, 0},
  };
  for (const NormShape& shape : layers) {
    const Dims dense = contiguous_strides(shape.dims);
    for (bool affine : {false, true}) {
      for (DType dtype : floats) {
        if (dtype != DType::f32 && shape.name != "last") continue;
        cases->push_back(layer_norm_backward_case(shape, dtype, affine, dense, shape.name));
      }
    }
    cases->push_back(layer_norm_backward_case(shape, DType::f32, true, gapped_strides(shape.dims, 3),
                                              fmt::format("{}_gaps", shape.name)));
  }
  const NormShape batches[] = {
      {"images", {2, 5, 7, 9}, 1}, {"many_channels", {2, 37, 3, 5}, 1},
      {"rows", {33, 17}, 1},       {"last", {3, 5, 8}, 2},
      {"first", {6, 35}, 0},       {"1d", {2, 3, 65}, 1},
  };
  for (bool backward : {false, true}) {
    for (const NormShape& shape : batches) {
      const Dims dense = contiguous_strides(shape.dims);
      for (DType dtype : floats) {
        if (dtype == DType::f32 || shape.name == "images") {
          cases->push_back(batch_norm_case(shape, backward, dtype, true, dense, shape.name));
        }
      }
      cases->push_back(batch_norm_case(shape, backward, DType::f32, false, dense, shape.name));
      if (shape.dims.rank() != 4) continue;
      for (DType dtype : {DType::f32, DType::bf16}) {
        cases->push_back(batch_norm_case(shape, backward, dtype, true, permuted_strides(shape.dims, {0, 2, 3, 1}),
                                         fmt::format("{}_nhwc", shape.name)));
      }
    }
  }
}

}  // namespace

void add_gradient_cases(std::vector<Case>* cases) {
  add_convolution_weights(cases);
  add_pooling_backwards(cases);
  add_norm_gradients(cases);
}

}  // namespace tenon::cases
