// Cases of scatter.
#include <string_view>

#include "primitives/infer/assemble.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr std::string_view op_names[] = {"", "assign", "add", "mul", "min", "max"};
constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16,   DType::i8,
                           DType::u8,  DType::i32, DType::i64, DType::boolean};

struct Shape {
  std::string_view name;
  Dims src;
  int32_t axis;
  Dims indices;
};

Case scatter_case(const Shape& shape, int32_t mode, int32_t op, DType dtype, DType index_type,
                  std::string_view suffix = "") {
  const bool slices = mode == EP_GATHER_SLICES;
  Case made = {fmt::format("scatter/{}_{}/{}/{}_{}{}", op_names[op], slices ? "slices" : "elements", dtype_name(dtype),
                           shape.name, dtype_name(index_type), suffix),
               make_desc(EP_PRIMITIVE_scatter),
               {},
               {},
               {},
               0};
  made.desc.attributes.scatter = {shape.axis, mode, op, 0};
  const Dims updates =
      slices ? infer::gather_slices("scatter", shape.src, shape.axis, shape.indices).value() : shape.indices;
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.src);
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.src);
  add_operand(made.desc, EP_ROLE_SRC_B, dtype, updates);
  add_operand(made.desc, EP_ROLE_INDICES, index_type, shape.indices);
  const auto length = static_cast<double>(shape.src[shape.axis]);
  made.values = {{}, {Fill::RANDOM, -2, 2}, {Fill::RANDOM, -2, 2}, {Fill::INDEX, -length, length - 1}};
  const double updated = static_cast<double>(shape.indices[slices ? 0 : shape.axis]);
  if (op == EP_SCATTER_ADD || op == EP_SCATTER_MUL) {
    set_tolerances(&made, [&](Tier tier) -> Tolerance {
      const double more = beyond_full("product", tier, dtype).ulps;
      if (op == EP_SCATTER_MUL) return {dtype_info(dtype).bits < 32 ? 1.0 : updated * (1 + more), 64, 0};
      return {dtype_info(dtype).bits < 32 ? 1.0 : 2.0, 4 * updated * (1 + more), 0};
    });
  }
  return made;
}

void add_faults(std::vector<Case>* cases) {
  for (int32_t mode : {EP_GATHER_SLICES, EP_GATHER_ELEMENTS}) {
    const Shape shapes[] = {
        {"out_of_range", {9, 17}, 0, mode == EP_GATHER_SLICES ? Dims{6} : Dims{6, 17}},
        {"out_of_range_inside", {4, 9, 5}, 1, mode == EP_GATHER_SLICES ? Dims{6} : Dims{4, 6, 5}},
    };
    for (const Shape& shape : shapes) {
      for (int64_t beyond : {9, -10}) {
        Case fault =
            scatter_case(shape, mode, EP_SCATTER_ADD, DType::f32, DType::i64, beyond > 0 ? "_above" : "_below");
        fault.values[3] = {Fill::INDEX, beyond > 0 ? 0.0 : static_cast<double>(beyond),
                           beyond > 0 ? static_cast<double>(beyond) : 3.0};
        fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
        cases->push_back(fault);
      }
    }
  }
}

}  // namespace

void add_scatter_cases(std::vector<Case>* cases) {
  const Shape slices[] = {
      {"rows", {37, 65}, 0, {19}},      {"embedding", {5, 16}, 0, {3, 7}}, {"columns", {9, 33}, 1, {12}},
      {"middle", {4, 9, 5}, 1, {2, 3}}, {"vector", {11}, 0, {40}},         {"few_places", {2, 70}, 0, {9}},
  };
  const Shape elements[] = {
      {"first", {9, 17}, 0, {5, 17}},
      {"last", {9, 17}, 1, {9, 30}},
      {"fewer", {9, 17}, 0, {12, 5}},
      {"middle", {4, 7, 5}, 1, {3, 11, 5}},
      {"many_lanes", {3, 20, 9}, 0, {7, 20, 9}},
      {"vector", {11}, 0, {40}},
  };
  for (int32_t op : {EP_SCATTER_ASSIGN, EP_SCATTER_ADD, EP_SCATTER_MUL, EP_SCATTER_MIN, EP_SCATTER_MAX}) {
    for (DType dtype : types) {
      if (dtype == DType::boolean && op != EP_SCATTER_ASSIGN) continue;
      for (const Shape& shape : slices) {
        if (dtype == DType::f32 || shape.name == "middle" || shape.name == "vector") {
          cases->push_back(scatter_case(shape, EP_GATHER_SLICES, op, dtype, DType::i64));
        }
      }
      for (const Shape& shape : elements) {
        if (dtype == DType::f32 || shape.name == "middle") {
          cases->push_back(scatter_case(shape, EP_GATHER_ELEMENTS, op, dtype, DType::i64));
        }
      }
    }
    for (int32_t mode : {EP_GATHER_SLICES, EP_GATHER_ELEMENTS}) {
      const Shape& shape = mode == EP_GATHER_SLICES ? slices[0] : elements[0];
      cases->push_back(scatter_case(shape, mode, op, DType::f32, DType::i32));
      Case transposed = scatter_case(shape, mode, op, DType::f32, DType::i64, "_transposed");
      for (int32_t i : {0, 2}) {
        transposed.desc.operands[i].strides[0] = 1;
        transposed.desc.operands[i].strides[1] = transposed.desc.operands[i].dims[0];
      }
      cases->push_back(transposed);
    }
  }
  for (int32_t op : {EP_SCATTER_MIN, EP_SCATTER_MAX}) {
    Case special = scatter_case(slices[0], EP_GATHER_SLICES, op, DType::f32, DType::i64, "_special");
    special.values[1].fill = Fill::SPECIAL_A;
    special.values[2].fill = Fill::SPECIAL_B;
    cases->push_back(special);
  }
  // With this many updates, a kernel may divide the positions among several threads.
  for (int32_t op : {EP_SCATTER_ASSIGN, EP_SCATTER_ADD}) {
    for (DType index_type : {DType::i64, DType::i32}) {
      const Shape shape = {"many", {3001}, 0, {20011}};
      cases->push_back(scatter_case(shape, EP_GATHER_ELEMENTS, op, DType::f32, index_type));
      Case equal = scatter_case(shape, EP_GATHER_SLICES, op, DType::f32, index_type, "_equal");
      equal.values[3] = {Fill::INDEX, 2000, 2000};
      cases->push_back(equal);
      Case fault = scatter_case(shape, EP_GATHER_ELEMENTS, op, DType::f32, index_type, "_out_of_range");
      fault.values[3] = {Fill::INDEX, 0, 3001};
      fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
      cases->push_back(fault);
    }
  }
  // With this many rows, a kernel may give each thread adjacent rows of DST.
  for (int32_t op : {EP_SCATTER_ASSIGN, EP_SCATTER_ADD, EP_SCATTER_MAX}) {
    const Shape shape = {"many_rows", {301, 70}, 0, {517}};
    cases->push_back(scatter_case(shape, EP_GATHER_SLICES, op, DType::f32, DType::i64));
    cases->push_back(scatter_case(shape, EP_GATHER_SLICES, op, DType::i64, DType::i32));
    Case few = scatter_case(shape, EP_GATHER_SLICES, op, DType::f32, DType::i64, "_few");
    few.values[3] = {Fill::INDEX, 7, 9};
    cases->push_back(few);
    Case fault = scatter_case(shape, EP_GATHER_SLICES, op, DType::f32, DType::i32, "_out_of_range");
    fault.values[3] = {Fill::INDEX, -302, 300};
    fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
    cases->push_back(fault);
  }
  // With this many integers at few positions, a kernel may add in tables.
  for (DType dtype : {DType::i64, DType::u64}) {
    const Shape shape = {"many_in_few", {37}, 0, {40003}};
    cases->push_back(scatter_case(shape, EP_GATHER_SLICES, EP_SCATTER_ADD, dtype, DType::i64));
    cases->push_back(scatter_case(shape, EP_GATHER_ELEMENTS, EP_SCATTER_ADD, dtype, DType::i32));
    Case fault = scatter_case(shape, EP_GATHER_ELEMENTS, EP_SCATTER_ADD, dtype, DType::i64, "_out_of_range");
    fault.values[3] = {Fill::INDEX, 0, 37};
    fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
    cases->push_back(fault);
  }
  add_faults(cases);
}

}  // namespace tenon::cases
