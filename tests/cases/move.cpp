// Cases of gather, concat, split and pad.
#include <string_view>

#include "primitives/infer/assemble.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr DType moved_types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                 DType::u8,  DType::i16, DType::i32, DType::i64,  DType::boolean};

std::string path(std::string_view kind, std::string_view what, DType dtype, std::string_view layout) {
  std::string name(kind);
  return name.append("/").append(what).append("/").append(dtype_name(dtype)).append("/").append(layout);
}

constexpr Values any_values = {Fill::RANDOM, -100, 100};

// --- gather ---

struct GatherShape {
  std::string_view name;
  Dims src;
  int32_t axis;
  Dims indices;
};

Case gather_case(const GatherShape& shape, int32_t mode, DType dtype, DType index_type, std::string_view suffix = "") {
  const bool slices = mode == EP_GATHER_SLICES;
  std::string layout(shape.name);
  layout.append("_").append(dtype_name(index_type)).append(suffix);
  Case made = {
      path("gather", slices ? "slices" : "elements", dtype, layout), make_desc(EP_PRIMITIVE_gather), {}, {}, {}, 0};
  made.desc.attributes.gather = {shape.axis, mode};
  const Dims dst =
      slices ? infer::gather_slices("gather", shape.src, shape.axis, shape.indices).value() : shape.indices;
  add_operand(made.desc, EP_ROLE_DST, dtype, dst);
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.src);
  add_operand(made.desc, EP_ROLE_INDICES, index_type, shape.indices);
  const auto length = static_cast<double>(shape.src[shape.axis]);
  made.values = {{}, any_values, {Fill::INDEX, -length, length - 1}};
  return made;
}

void add_gathers(std::vector<Case>* cases) {
  const GatherShape slices[] = {
      {"rows", {37, 65}, 0, {19}},           {"embedding", {50, 16}, 0, {3, 7}},      {"columns", {9, 33}, 1, {12}},
      {"middle", {4, 9, 5}, 1, {6}},         {"middle_matrix", {4, 9, 5}, 1, {2, 3}}, {"vector", {101}, 0, {40}},
      {"last_of_three", {3, 4, 17}, 2, {5}},
  };
  const GatherShape elements[] = {
      {"first", {9, 17}, 0, {5, 17}},
      {"last", {9, 17}, 1, {9, 30}},
      {"middle", {4, 7, 5}, 1, {3, 11, 5}},
      {"vector", {101}, 0, {40}},
  };
  for (DType dtype : moved_types) {
    for (const GatherShape& shape : slices) {
      if (dtype != DType::f32 && shape.name != "rows" && shape.name != "middle") continue;
      cases->push_back(gather_case(shape, EP_GATHER_SLICES, dtype, DType::i64));
    }
    for (const GatherShape& shape : elements) {
      if (dtype != DType::f32 && shape.name != "middle") continue;
      cases->push_back(gather_case(shape, EP_GATHER_ELEMENTS, dtype, DType::i64));
    }
  }
  for (const GatherShape& shape : slices)
    cases->push_back(gather_case(shape, EP_GATHER_SLICES, DType::f32, DType::i32));
  for (const GatherShape& shape : elements)
    cases->push_back(gather_case(shape, EP_GATHER_ELEMENTS, DType::f32, DType::i32));

  for (int32_t mode : {EP_GATHER_SLICES, EP_GATHER_ELEMENTS}) {
    // Many consecutive indices, all counted from the start.
    const GatherShape long_row = {"long_row", {2, 91}, 1, mode == EP_GATHER_SLICES ? Dims{131} : Dims{2, 131}};
    for (DType dtype : moved_types) {
      for (DType index_type : {DType::i64, DType::i32}) {
        Case forward = gather_case(long_row, mode, dtype, index_type, "_forward");
        forward.values[2] = {Fill::INDEX, 0, 90};
        cases->push_back(forward);
      }
    }
    Case transposed = gather_case({"transposed", {9, 17}, 0, mode == EP_GATHER_SLICES ? Dims{6} : Dims{6, 17}}, mode,
                                  DType::f32, DType::i64);
    transposed.desc.operands[1].strides[0] = 1;
    transposed.desc.operands[1].strides[1] = 9;
    cases->push_back(transposed);
    // Indices one step beyond the axis. They point outside the source or, along an axis in the middle, at another
    // element.
    const GatherShape beyond_shapes[] = {
        {"out_of_range", {9, 17}, 0, mode == EP_GATHER_SLICES ? Dims{6} : Dims{6, 17}},
        {"out_of_range_inside", {4, 9, 5}, 1, mode == EP_GATHER_SLICES ? Dims{6} : Dims{4, 6, 5}},
        {"out_of_range_of_many", {9}, 0, Dims{77}},
    };
    for (const GatherShape& shape : beyond_shapes) {
      for (int64_t beyond : {9, -10}) {
        Case fault = gather_case(shape, mode, DType::f32, DType::i64, beyond > 0 ? "_above" : "_below");
        fault.values[2] = {Fill::INDEX, beyond > 0 ? 0.0 : static_cast<double>(beyond),
                           beyond > 0 ? static_cast<double>(beyond) : 3.0};
        fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
        cases->push_back(fault);
      }
    }
  }
}

// --- concat and split ---

struct PartShape {
  std::string_view name;
  Dims dims;  // the dims of the whole operand
  int32_t axis;
  std::vector<int64_t> lengths;
  bool every_type = false;  // not only f32
};

Case part_case(const PartShape& shape, bool splits, DType dtype, std::string_view suffix = "") {
  Case made = {path(splits ? "split" : "concat", fmt::format("{}", shape.lengths.size()), dtype,
                    fmt::format("{}{}", shape.name, suffix)),
               make_desc(splits ? EP_PRIMITIVE_split : EP_PRIMITIVE_concat),
               {},
               {},
               {},
               0};
  const Dims whole = shape.dims;
  if (splits) {
    made.desc.attributes.split.axis = shape.axis;
  } else {
    made.desc.attributes.concat.axis = shape.axis;
    add_operand(made.desc, EP_ROLE_DST, dtype, whole);
  }
  int32_t role = splits ? EP_ROLE_DST_0 : EP_ROLE_SRC_0;
  for (int64_t length : shape.lengths) {
    Dims part = whole;
    part[shape.axis] = length;
    add_operand(made.desc, role++, dtype, part);
  }
  if (splits) add_operand(made.desc, EP_ROLE_SRC, dtype, whole);
  made.values.assign(made.desc.operand_count, any_values);
  return made;
}

void add_parts(std::vector<Case>* cases) {
  const PartShape shapes[] = {
      {"first", {11, 13}, 0, {4, 7}},
      {"last", {9, 20}, 1, {5, 1, 14}, true},
      {"middle", {3, 12, 5}, 1, {3, 3, 3, 3}, true},
      {"vector", {1037}, 0, {1000, 37}},
      {"channels", {2, 9, 4, 4}, 1, {4, 5}},
      {"one_part", {5, 7}, 1, {7}},
      {"pairs", {7, 37, 2}, 2, {1, 1}, true},
      {"triples", {61, 3}, 1, {1, 1, 1}, true},
      {"quadruples", {517, 4}, 1, {1, 1, 1, 1}, true},
      {"quintuples", {31, 5}, 1, {1, 1, 1, 1, 1}},
      {"fifteen", {4, 30}, 1, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}},
  };
  for (bool splits : {false, true}) {
    for (DType dtype : moved_types) {
      for (const PartShape& shape : shapes) {
        if (dtype != DType::f32 && !shape.every_type) continue;
        cases->push_back(part_case(shape, splits, dtype));
      }
    }
    Case transposed = part_case({"parts_transposed", {6, 10}, 1, {4, 6}}, splits, DType::f32);
    for (uint32_t i = 0; i < transposed.desc.operand_count; ++i) {
      ep_operand_desc& operand = transposed.desc.operands[i];
      const bool whole = operand.role == EP_ROLE_DST || operand.role == EP_ROLE_SRC;
      if (whole) continue;
      operand.strides[0] = 1;
      operand.strides[1] = operand.dims[0];
    }
    cases->push_back(transposed);
  }
}

// --- pad ---

struct PadShape {
  std::string_view name;
  Dims src;
  Dims low;
  Dims high;
};

void add_pads(std::vector<Case>* cases) {
  const PadShape shapes[] = {
      {"vector", {37}, {3}, {5}},
      {"last", {5, 9}, {0, 2}, {0, 3}},
      {"first", {5, 9}, {4, 0}, {1, 0}},
      {"both", {5, 9}, {1, 2}, {3, 4}},
      {"image", {2, 3, 5, 7}, {0, 0, 1, 2}, {0, 0, 2, 1}},
      {"none", {5, 9}, {0, 0}, {0, 0}},
      {"low_only", {4, 6, 3}, {1, 0, 2}, {0, 0, 0}},
  };
  constexpr std::string_view modes[] = {"", "constant", "reflect", "edge"};
  for (int32_t mode : {EP_PAD_CONSTANT, EP_PAD_REFLECT, EP_PAD_EDGE}) {
    for (DType dtype : moved_types) {
      for (const PadShape& shape : shapes) {
        if (dtype != DType::f32 && shape.name != "both") continue;
        for (bool transposed : {false, true}) {
          if (transposed && (shape.name != "both" || dtype != DType::f32)) continue;
          Case made = {
              path("pad", modes[mode], dtype, fmt::format("{}{}", shape.name, transposed ? "_transposed" : "")),
              make_desc(EP_PRIMITIVE_pad),
              {},
              {{}, any_values},
              {},
              0};
          made.desc.attributes.pad.mode = mode;
          Dims dst = shape.src;
          for (int32_t axis = 0; axis < dst.rank(); ++axis) {
            made.desc.attributes.pad.low[axis] = shape.low[axis];
            made.desc.attributes.pad.high[axis] = shape.high[axis];
            dst[axis] += shape.low[axis] + shape.high[axis];
          }
          add_operand(made.desc, EP_ROLE_DST, dtype, dst);
          add_operand(made.desc, EP_ROLE_SRC, dtype, shape.src,
                      transposed ? permuted_strides(shape.src, {1, 0}) : contiguous_strides(shape.src));
          if (mode == EP_PAD_CONSTANT) made.scalars = {make_scalar(dtype, dtype == DType::boolean ? 1 : 3)};
          cases->push_back(made);
        }
      }
    }
  }
}

}  // namespace

void add_move_cases(std::vector<Case>* cases) {
  add_gathers(cases);
  add_parts(cases);
  add_pads(cases);
}

}  // namespace tenon::cases
