// Cases of fill, and of copy with every cast.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr DType all_types[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

std::string path(std::string_view kind, std::string_view types, std::string_view layout) {
  std::string name(kind);
  return name.append("/").append(types).append("/").append(layout);
}

struct Layout {
  std::string_view name;
  Dims dims;
  Dims dst;
  Dims src;
};

std::vector<Layout> layouts() {
  const Dims matrix = {33, 65};
  const Dims cube = {3, 5, 7, 4};
  return {
      {"one", {1}, {1}, {1}},
      {"vector", {1037}, {1}, {1}},
      {"long", {100003}, {1}, {1}},
      {"src_transposed", matrix, contiguous_strides(matrix), permuted_strides(matrix, {1, 0})},
      {"dst_transposed", matrix, permuted_strides(matrix, {1, 0}), contiguous_strides(matrix)},
      {"gaps", matrix, gapped_strides(matrix, 3), gapped_strides(matrix, 1)},
      {"src_stride_2", {131}, {1}, {2}},
      {"dst_stride_2", {131}, {2}, {1}},
      {"repeat", matrix, contiguous_strides(matrix), {0, 1}},
      {"repeat_one", matrix, contiguous_strides(matrix), {0, 0}},
      {"nchw_from_nhwc", cube, contiguous_strides(cube), permuted_strides(cube, {0, 2, 3, 1})},
      {"rank8",
       {2, 1, 3, 2, 1, 2, 3, 2},
       contiguous_strides({2, 1, 3, 2, 1, 2, 3, 2}),
       permuted_strides({2, 1, 3, 2, 1, 2, 3, 2}, {7, 6, 5, 4, 3, 2, 1, 0})},
  };
}

Case copy_case(DType to, DType from, const Layout& layout, Values values) {
  const std::string types = fmt::format("{}_to_{}", dtype_name(from), dtype_name(to));
  Case made = {path("copy", types, layout.name), make_desc(EP_PRIMITIVE_copy), {}, {{}, values}, {}, 0};
  add_operand(made.desc, EP_ROLE_DST, to, layout.dims, layout.dst);
  add_operand(made.desc, EP_ROLE_SRC, from, layout.dims, layout.src);
  return made;
}

void add_fill_cases(std::vector<Case>* cases) {
  const Layout fill_layouts[] = {
      {"vector", {1037}, {1}, {}},
      {"gaps", {9, 37}, gapped_strides({9, 37}, 4), {}},
      {"transposed", {5, 7, 3}, permuted_strides({5, 7, 3}, {2, 0, 1}), {}},
  };
  for (DType dtype : all_types) {
    for (const Layout& layout : fill_layouts) {
      if (dtype_info(dtype).bits < 8 && layout.name != "vector") continue;
      Case made = {path("fill", dtype_name(dtype), layout.name), make_desc(EP_PRIMITIVE_fill), {}, {{}}, {}, 0};
      add_operand(made.desc, EP_ROLE_DST, dtype, layout.dims, layout.dst);
      made.scalars = {make_scalar(dtype, is_floating(dtype) ? -1.5 : (dtype == DType::boolean ? 1 : 5))};
      cases->push_back(made);
    }
  }
}

}  // namespace

void add_copy_cases(std::vector<Case>* cases) {
  add_fill_cases(cases);
  for (DType from : all_types) {
    for (DType to : all_types) {
      cases->push_back(copy_case(to, from, {"special", {401}, {1}, {1}}, {Fill::SPECIAL, -300, 300}));
    }
  }
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i8, DType::i64, DType::boolean}) {
    for (const Layout& layout : layouts()) {
      if (layout.name == "long" && dtype != DType::f32) continue;
      cases->push_back(copy_case(dtype, dtype, layout, {Fill::RANDOM, -100, 100}));
    }
  }
  for (const Layout& layout : layouts()) {
    cases->push_back(copy_case(DType::f32, DType::i64, layout, {Fill::RANDOM, -100, 100}));
    cases->push_back(copy_case(DType::f16, DType::f32, layout, {Fill::RANDOM, -100, 100}));
  }
}

}  // namespace tenon::cases
