// Cases of resize.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Grid {
  std::string_view name;
  Dims src;
  Dims dst;
  bool half;
};

Case resize_case(const Grid& grid, int32_t mode, int32_t round, int32_t flags, DType dtype, std::string_view suffix) {
  constexpr std::string_view modes[] = {"", "nearest", "linear", "cubic"};
  constexpr std::string_view rounds[] = {"", "_floor", "_ceil", "_prefer_floor", "_prefer_ceil"};
  Case made = {fmt::format("resize/{}{}{}/{}/{}{}", modes[mode], rounds[round],
                           flags != 0 ? fmt::format("_{}", flags) : "", dtype_name(dtype), grid.name, suffix),
               make_desc(EP_PRIMITIVE_resize),
               {},
               {},
               {},
               0};
  ep_resize_attributes& at = made.desc.attributes.resize;
  at.mode = mode;
  at.round = round;
  at.flags = flags | (grid.half ? EP_RESIZE_FLAG_HALF : 0);
  at.cubic = mode == EP_RESIZE_CUBIC ? -0.75 : 0;
  for (int32_t axis = 0; axis < grid.src.rank(); ++axis) {
    at.scale[axis] = static_cast<double>(grid.dst[axis]) / static_cast<double>(grid.src[axis]);
    at.offset[axis] = grid.half ? -0.5 : 0;
  }
  add_operand(made.desc, EP_ROLE_DST, dtype, grid.dst);
  add_operand(made.desc, EP_ROLE_SRC, dtype, grid.src);
  made.values.assign(2, {Fill::RANDOM, -8, 8});
  made.scalars = {make_scalar(dtype, 3)};
  if (mode != EP_RESIZE_NEAREST) {
    set_tolerances(&made, [&](Tier tier) -> Tolerance {
      return {2, 256 * (1 + beyond_full("product", tier, dtype).ulps), 0};
    });
  }
  return made;
}

Case with_strides(Case made, std::initializer_list<int32_t> order, std::string_view suffix) {
  made.name += suffix;
  for (uint32_t i = 0; i < 2; ++i) {
    ep_operand_desc& operand = made.desc.operands[i];
    const Dims strides = permuted_strides(Dims({operand.dims, static_cast<size_t>(operand.rank)}), order);
    std::copy(strides.begin(), strides.end(), operand.strides);
  }
  return made;
}

}  // namespace

void add_resize_cases(std::vector<Case>* cases) {
  const Grid grids[] = {
      {"up", {2, 3, 7, 9}, {2, 3, 14, 18}, true},     {"down", {1, 4, 17, 33}, {1, 4, 5, 16}, true},
      {"odd", {1, 2, 7, 5}, {1, 2, 11, 3}, true},     {"corner", {2, 3, 7, 9}, {2, 3, 10, 20}, false},
      {"1d", {2, 3, 31}, {2, 3, 67}, true},           {"3d", {1, 2, 3, 4, 5}, {1, 2, 5, 3, 9}, true},
      {"one", {1, 1, 1, 1}, {1, 1, 3, 1}, true},      {"all_axes", {2, 3, 4}, {5, 2, 7}, true},
      {"wide", {1, 8, 40, 37}, {1, 8, 80, 74}, true},
  };
  for (const Grid& grid : grids) {
    for (int32_t round = EP_RESIZE_FLOOR; round <= EP_RESIZE_PREFER_CEIL; ++round) {
      cases->push_back(resize_case(grid, EP_RESIZE_NEAREST, round, 0, DType::f32, ""));
    }
    for (int32_t mode : {EP_RESIZE_LINEAR, EP_RESIZE_CUBIC}) {
      for (int32_t flags : {0, EP_RESIZE_FLAG_ANTIALIAS, EP_RESIZE_FLAG_EXCLUDE_OUTSIDE,
                            EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE, EP_RESIZE_FLAG_EXTRAPOLATE}) {
        cases->push_back(resize_case(grid, mode, 0, flags, DType::f32, ""));
      }
    }
    if (grid.name != "odd") continue;
    cases->push_back(resize_case(grid, EP_RESIZE_NEAREST, EP_RESIZE_FLOOR, EP_RESIZE_FLAG_EXTRAPOLATE, DType::f32, ""));
    for (DType dtype :
         {DType::boolean, DType::i8, DType::u16, DType::i32, DType::i64, DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(resize_case(grid, EP_RESIZE_NEAREST, EP_RESIZE_PREFER_FLOOR, 0, dtype, ""));
      if (!is_floating(dtype)) continue;
      cases->push_back(resize_case(grid, EP_RESIZE_LINEAR, 0, 0, dtype, ""));
      cases->push_back(resize_case(grid, EP_RESIZE_CUBIC, 0, EP_RESIZE_FLAG_ANTIALIAS, dtype, ""));
    }
    for (int32_t mode : {EP_RESIZE_NEAREST, EP_RESIZE_LINEAR}) {
      const int32_t round = mode == EP_RESIZE_NEAREST ? EP_RESIZE_FLOOR : 0;
      cases->push_back(with_strides(resize_case(grid, mode, round, 0, DType::f32, ""), {0, 2, 3, 1}, "_nhwc"));
      Case special = resize_case(grid, mode, round, 0, DType::f32, "_special");
      special.values.assign(2, mode == EP_RESIZE_NEAREST ? Values{Fill::SPECIAL, -8, 8} : Values{Fill::FINITE, -8, 8});
      cases->push_back(special);
    }
  }
}

}  // namespace tenon::cases
