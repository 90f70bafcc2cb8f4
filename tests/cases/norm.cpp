// Cases of layer_norm, batch_norm, rms_norm and group_norm.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  Dims dims;
  int32_t axis;
};

const Shape layer_shapes[] = {
    {"last", {37, 67}, 1},      {"wide", {5, 3001}, 1},           {"narrow", {129, 3}, 1},
    {"last_two", {5, 7, 9}, 1}, {"last_of_three", {3, 5, 64}, 2}, {"all", {6, 35}, 0},
};

std::string path(std::string_view kind, std::string_view what, DType dtype, std::string_view layout) {
  std::string name(kind);
  return name.append("/").append(what).append("/").append(dtype_name(dtype)).append("/").append(layout);
}

// (x - mean) * inv_std has magnitude 2. Mean and variance of n numbers below 8 have an error of a few epsilons each. On
// the lower tiers each result, of magnitude at most 8, has a larger error from a root and a quotient.
void set_norm_tolerance(Case* test, DType dtype) {
  set_tolerances(test, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("sqrt", tier, dtype).ulps + beyond_full("div", tier, dtype).ulps;
    return {dtype_info(dtype).bits < 32 ? 1.0 : 8.0 + more, 64 + 8 * more, 0};
  });
}

Case layer_norm_case(const Shape& shape, DType dtype, DType parameter, bool affine, bool statistics,
                     const Dims& strides, std::string_view layout) {
  const std::string_view what = statistics ? "statistics" : affine ? "affine" : "plain";
  Case made = {path("layer_norm", what, dtype, layout), make_desc(EP_PRIMITIVE_layer_norm), {}, {}, {}, 0};
  made.desc.attributes.layer_norm.axis = shape.axis;
  Dims rows = shape.dims;
  Dims normalised;
  for (int32_t axis = shape.axis; axis < shape.dims.rank(); ++axis) {
    rows[axis] = 1;
    normalised.push_back(shape.dims[axis]);
  }
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
  if (statistics) {
    const DType measured = dtype == DType::f64 ? dtype : DType::f32;
    add_operand(made.desc, EP_ROLE_MEAN, measured, rows);
    add_operand(made.desc, EP_ROLE_INV_STD, measured, rows);
  }
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, strides);
  if (affine) {
    add_operand(made.desc, EP_ROLE_SCALE, parameter, normalised);
    add_operand(made.desc, EP_ROLE_SHIFT, parameter, normalised);
  }
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  made.scalars = {make_scalar(dtype, 0.0009765625)};
  set_norm_tolerance(&made, dtype);
  return made;
}

void add_layer_norms(std::vector<Case>* cases) {
  for (const Shape& shape : layer_shapes) {
    const Dims strides = contiguous_strides(shape.dims);
    for (bool affine : {false, true}) {
      cases->push_back(layer_norm_case(shape, DType::f32, DType::f32, affine, false, strides, shape.name));
    }
    cases->push_back(layer_norm_case(shape, DType::f32, DType::f32, true, true, strides, shape.name));
    cases->push_back(layer_norm_case(shape, DType::f32, DType::f32, true, false, gapped_strides(shape.dims, 3),
                                     fmt::format("{}_gaps", shape.name)));
    if (shape.name != "last") continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(layer_norm_case(shape, dtype, dtype, true, false, strides, shape.name));
      cases->push_back(layer_norm_case(shape, dtype, dtype, true, true, strides, shape.name));
    }
  }
}

void add_batch_norms(std::vector<Case>* cases) {
  const Shape batch_shapes[] = {
      {"images", {2, 5, 7, 9}, 1}, {"rows", {33, 17}, 1}, {"last", {3, 5, 8}, 2},
      {"first", {6, 35}, 0},       {"1d", {2, 3, 65}, 1},
  };
  for (const Shape& shape : batch_shapes) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (bool channels_last : {false, true}) {
        if (channels_last && (shape.dims.rank() != 4 || dtype != DType::f32)) continue;
        const Dims strides =
            channels_last ? permuted_strides(shape.dims, {0, 2, 3, 1}) : contiguous_strides(shape.dims);
        Case made = {path("batch_norm", "plain", dtype, fmt::format("{}{}", shape.name, channels_last ? "_nhwc" : "")),
                     make_desc(EP_PRIMITIVE_batch_norm),
                     {},
                     {},
                     {},
                     0};
        made.desc.attributes.batch_norm.axis = shape.axis;
        add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
        add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, strides);
        for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE}) {
          add_operand(made.desc, role, dtype, {shape.dims[shape.axis]});
        }
        made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
        made.values.back() = {Fill::RANDOM, 0.25, 2};
        made.scalars = {make_scalar(dtype, 0.0009765625)};
        set_norm_tolerance(&made, dtype);
        cases->push_back(made);
      }
    }
  }
}

Case rms_norm_case(const Shape& shape, DType dtype, bool affine, bool statistics, const Dims& strides,
                   std::string_view layout) {
  const std::string_view what = statistics ? "statistics" : affine ? "affine" : "plain";
  Case made = {path("rms_norm", what, dtype, layout), make_desc(EP_PRIMITIVE_rms_norm), {}, {}, {}, 0};
  made.desc.attributes.rms_norm.axis = shape.axis;
  Dims rows = shape.dims;
  Dims normalised;
  for (int32_t axis = shape.axis; axis < shape.dims.rank(); ++axis) {
    rows[axis] = 1;
    normalised.push_back(shape.dims[axis]);
  }
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
  if (statistics) add_operand(made.desc, EP_ROLE_INV_STD, dtype == DType::f64 ? dtype : DType::f32, rows);
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, strides);
  if (affine) add_operand(made.desc, EP_ROLE_SCALE, dtype, normalised);
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  made.scalars = {make_scalar(dtype, 0.0009765625)};
  set_norm_tolerance(&made, dtype);
  return made;
}

void add_rms_norms(std::vector<Case>* cases) {
  for (const Shape& shape : layer_shapes) {
    const Dims strides = contiguous_strides(shape.dims);
    for (bool affine : {false, true}) {
      cases->push_back(rms_norm_case(shape, DType::f32, affine, false, strides, shape.name));
    }
    cases->push_back(rms_norm_case(shape, DType::f32, true, true, strides, shape.name));
    cases->push_back(rms_norm_case(shape, DType::f32, true, false, gapped_strides(shape.dims, 3),
                                   fmt::format("{}_gaps", shape.name)));
    if (shape.name != "last") continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(rms_norm_case(shape, dtype, true, true, strides, shape.name));
    }
  }
}

struct GroupShape {
  std::string_view name;
  Dims dims;
  int64_t groups;
};

Case group_norm_case(const GroupShape& shape, DType dtype, bool affine, bool statistics, const Dims& strides,
                     std::string_view layout) {
  const std::string_view what = statistics ? "statistics" : affine ? "affine" : "plain";
  Case made = {path("group_norm", what, dtype, layout), make_desc(EP_PRIMITIVE_group_norm), {}, {}, {}, 0};
  made.desc.attributes.group_norm.groups = shape.groups;
  const DType measured = dtype == DType::f64 ? dtype : DType::f32;
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims, strides);
  if (statistics) {
    add_operand(made.desc, EP_ROLE_MEAN, measured, {shape.dims[0], shape.groups});
    add_operand(made.desc, EP_ROLE_INV_STD, measured, {shape.dims[0], shape.groups});
  }
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, strides);
  if (affine) {
    add_operand(made.desc, EP_ROLE_SCALE, dtype, {shape.dims[1]});
    add_operand(made.desc, EP_ROLE_SHIFT, dtype, {shape.dims[1]});
  }
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  made.scalars = {make_scalar(dtype, 0.0009765625)};
  set_norm_tolerance(&made, dtype);
  return made;
}

void add_group_norms(std::vector<Case>* cases) {
  const GroupShape shapes[] = {
      {"images", {2, 6, 7, 9}, 3}, {"one_group", {3, 5, 33}, 1}, {"instance", {2, 4, 5, 3}, 4},
      {"rows", {7, 32}, 4},        {"long", {2, 8, 30, 31}, 2},
  };
  for (const GroupShape& shape : shapes) {
    const Dims strides = contiguous_strides(shape.dims);
    for (bool affine : {false, true}) {
      cases->push_back(group_norm_case(shape, DType::f32, affine, false, strides, shape.name));
    }
    cases->push_back(group_norm_case(shape, DType::f32, true, true, strides, shape.name));
    cases->push_back(group_norm_case(shape, DType::f32, true, false, gapped_strides(shape.dims, 3),
                                     fmt::format("{}_gaps", shape.name)));
    if (shape.dims.rank() == 4) {
      cases->push_back(group_norm_case(shape, DType::f32, true, true, permuted_strides(shape.dims, {0, 2, 3, 1}),
                                       fmt::format("{}_nhwc", shape.name)));
    }
    if (shape.name != "images") continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(group_norm_case(shape, dtype, true, true, strides, shape.name));
    }
  }
}

}  // namespace

void add_norm_cases(std::vector<Case>* cases) {
  add_layer_norms(cases);
  add_batch_norms(cases);
  add_rms_norms(cases);
  add_group_norms(cases);
}

}  // namespace tenon::cases
