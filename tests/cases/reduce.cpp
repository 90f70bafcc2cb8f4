// Cases of reduce, arg_reduce and softmax.
#include <cmath>
#include <string_view>

#include "primitives/table/table.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr DType all_types[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

std::string path(std::string_view kind, std::string_view op, DType dtype, std::string_view layout) {
  std::string name(kind);
  return name.append("/").append(op).append("/").append(dtype_name(dtype)).append("/").append(layout);
}

struct Layout {
  std::string_view name;
  Dims dims;
  Dims strides;
  uint32_t axes;
};

std::vector<Layout> layouts() {
  const Dims cube = {7, 33, 5};
  const Dims image = {2, 6, 5, 7};
  return {
      {"one", {1}, {1}, 1},
      {"all_of_vector", {1037}, {1}, 1},
      {"long", {70001}, {1}, 1},
      {"first", cube, contiguous_strides(cube), 0b001},
      {"middle", cube, contiguous_strides(cube), 0b010},
      {"last", cube, contiguous_strides(cube), 0b100},
      {"first_two", cube, contiguous_strides(cube), 0b011},
      {"last_two", cube, contiguous_strides(cube), 0b110},
      {"outer_two", cube, contiguous_strides(cube), 0b101},
      {"all", cube, contiguous_strides(cube), 0b111},
      {"wide_rows", {3, 4099}, {4099, 1}, 0b10},
      {"wide_columns", {4099, 3}, {3, 1}, 0b01},
      {"short_rows", {1025, 2}, {2, 1}, 0b10},
      {"transposed_last", cube, permuted_strides(cube, {2, 1, 0}), 0b100},
      {"transposed_first", cube, permuted_strides(cube, {2, 1, 0}), 0b001},
      {"gaps", {9, 37}, gapped_strides({9, 37}, 3), 0b10},
      {"repeat", {9, 37}, {0, 1}, 0b01},
      {"image_spatial", image, contiguous_strides(image), 0b1100},
      {"image_spatial_nhwc", image, permuted_strides(image, {0, 2, 3, 1}), 0b1100},
      {"image_channels", image, contiguous_strides(image), 0b1101},
      {"axis_of_one", {5, 1, 3}, {3, 3, 1}, 0b010},
  };
}

int64_t reduced_count(const Layout& layout) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < layout.dims.rank(); ++axis) {
    if (layout.axes >> axis & 1) count *= layout.dims[axis];
  }
  return count;
}

// A sum of n numbers of magnitude 1, added one by one in f32, is off by at most n epsilon, and usually by far less.
// Squares and magnitudes have one sign, so n epsilon is then a relative error.
// On the lower tiers the quotient, logarithm or root at the end has a larger error.
Tolerance reduce_tolerance(int32_t op, DType dtype, double count, Tier tier) {
  if (!is_floating(dtype)) return {};
  const double step = dtype_info(dtype).bits < 32 ? 1 : 0;
  const auto more = [&](std::string_view name) { return beyond_full(name, tier, dtype); };
  switch (op) {
    case EP_REDUCE_max:
    case EP_REDUCE_min: return {};
    case EP_REDUCE_sum:
    case EP_REDUCE_nansum: return {step, 2 * count, 0};
    case EP_REDUCE_mean: return {1 + more("div").ulps, 2, 0};
    case EP_REDUCE_log_sum: return {5 + more("log").ulps, 4 + count / 8 + more("log").epsilons, 0};
    case EP_REDUCE_l2_norm: return {step > 0 ? 1 : 4 + count + more("sqrt").ulps, 0, 1};
    default: return {step > 0 ? 1 : 4 + count, 0, 1};
  }
}

Case reduce_case(const table::ReduceRow& row, DType dtype, const Layout& layout) {
  Case made = {path("reduce", row.name, dtype, layout.name), make_desc(EP_PRIMITIVE_reduce), {}, {}, {}, 0};
  made.desc.attributes.reduce = {row.id, layout.axes};
  Dims dst = layout.dims;
  for (int32_t axis = 0; axis < dst.rank(); ++axis) {
    if (layout.axes >> axis & 1) dst[axis] = 1;
  }
  add_operand(made.desc, EP_ROLE_DST, dtype, dst);
  add_operand(made.desc, EP_ROLE_SRC, dtype, layout.dims, layout.strides);
  Values values = {Fill::RANDOM, -1, 1};
  const bool selects = row.id == EP_REDUCE_max || row.id == EP_REDUCE_min;
  if (row.id == EP_REDUCE_log_sum) values = {Fill::RANDOM, 0.25, 2};
  if (row.id == EP_REDUCE_prod) values = {Fill::RANDOM, 0.9, 1.1};
  if (selects || dtype == DType::boolean) values = {Fill::RANDOM, -100, 100};
  if (!is_floating(dtype)) values = {Fill::SPECIAL, -100, 100};
  if (row.id == EP_REDUCE_any) values = {Fill::INDEX, 0, 0};
  if (row.id == EP_REDUCE_all) values = {Fill::INDEX, 1, 1};
  made.values = {{}, values};
  set_tolerances(&made, [&](Tier tier) {
    return reduce_tolerance(row.id, dtype, static_cast<double>(reduced_count(layout)), tier);
  });
  return made;
}

void add_plain_reductions(std::vector<Case>* cases) {
  for (const table::ReduceRow& row : table::reduce_rows()) {
    for (DType dtype : all_types) {
      if (!table::in_domain(row.domain, dtype) || dtype_info(dtype).bits < 8) continue;
      const bool whole = dtype == DType::f32 || dtype == DType::boolean;
      for (const Layout& layout : layouts()) {
        const bool some = layout.name == "middle" || layout.name == "last" || layout.name == "all";
        const bool long_product = row.id == EP_REDUCE_prod && reduced_count(layout) > 2000;
        if ((!whole && !some) || long_product) continue;
        if (dtype == DType::f8e4m3fn && reduced_count(layout) > 400) continue;
        cases->push_back(reduce_case(row, dtype, layout));
      }
      if (is_floating(dtype) && (row.id == EP_REDUCE_max || row.id == EP_REDUCE_min || row.id == EP_REDUCE_sum)) {
        Case made = reduce_case(row, dtype, {"special", {53, 11}, {11, 1}, 0b10});
        made.values[1] = {Fill::SPECIAL, -1, 1};
        if (row.id == EP_REDUCE_sum) made.values[1] = {Fill::TIES, -1, 1};
        cases->push_back(made);
      }
      if (row.domain == table::Domain::BOOL) {
        Case made = reduce_case(row, dtype, {"mixed", {53, 3}, {3, 1}, 0b10});
        made.values[1] = {Fill::INDEX, 0, 1};
        cases->push_back(made);
      }
    }
  }
}

// All elements but the last are equal, and the last one changes the result. If a kernel splits a reduction into parts,
// threads, rows or blocks, it most easily loses the end of a part. The numbers are exact in any order.
void add_last_elements(std::vector<Case>* cases) {
  const Layout last_layouts[] = {
      {"last_counts", {1037}, {1}, 0b1},
      {"last_of_parts", {131072}, {1}, 0b1},
      {"last_of_uneven_parts", {200001}, {1}, 0b1},
      {"last_of_rows", {3, 140001}, {140001, 1}, 0b10},
      {"last_of_columns", {4099, 37}, {37, 1}, 0b01},
      {"last_of_all", {401, 3, 167}, contiguous_strides({401, 3, 167}), 0b111},
  };
  struct LastValues {
    int32_t op;
    double low, high;
  };
  const LastValues values[] = {{EP_REDUCE_sum, 1, 2}, {EP_REDUCE_prod, 1, 2}, {EP_REDUCE_max, 1, 2},
                               {EP_REDUCE_min, 2, 1}, {EP_REDUCE_any, 0, 1},  {EP_REDUCE_all, 1, 0}};
  for (const LastValues& value : values) {
    const table::ReduceRow& row = *table::reduce_row(value.op);
    for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::boolean}) {
      if (!table::in_domain(row.domain, dtype)) continue;
      for (const Layout& layout : last_layouts) {
        if (dtype != DType::f32 && row.domain != table::Domain::BOOL && layout.name != "last_of_uneven_parts") continue;
        Case made = reduce_case(row, dtype, layout);
        made.values[1] = {Fill::LAST, value.low, value.high};
        set_tolerances(&made, [](Tier) { return Tolerance(); });
        cases->push_back(made);
      }
    }
  }
}

void add_arg_reductions(std::vector<Case>* cases) {
  const Dims cube = {7, 33, 5};
  const Layout arg_layouts[] = {
      {"first", cube, contiguous_strides(cube), 0},
      {"middle", cube, contiguous_strides(cube), 1},
      {"last", cube, contiguous_strides(cube), 2},
      {"vector", {1037}, {1}, 0},
      {"transposed", cube, permuted_strides(cube, {2, 0, 1}), 2},
      {"wide", {3, 4099}, {4099, 1}, 1},
  };
  for (int32_t op : {EP_REDUCE_max, EP_REDUCE_min}) {
    for (DType dtype : all_types) {
      if (!table::in_domain(table::Domain::NUMERIC, dtype) || dtype_info(dtype).bits < 8) continue;
      for (const Layout& layout : arg_layouts) {
        if (dtype != DType::f32 && dtype != DType::i32 && layout.name != "middle" && layout.name != "last") continue;
        for (Fill fill : {Fill::RANDOM, Fill::SPECIAL, Fill::TIES}) {
          for (int32_t last : {0, 1}) {
            if (last == 1 && fill == Fill::RANDOM) continue;
            std::string name(layout.name);
            name += fill == Fill::RANDOM ? "" : fill == Fill::SPECIAL ? "_special" : "_ties";
            if (last == 1) name += "_last";
            Case made = {path("arg_reduce", op == EP_REDUCE_max ? "max" : "min", dtype, name),
                         make_desc(EP_PRIMITIVE_arg_reduce),
                         {},
                         {{}, {fill, -50, 50}},
                         {},
                         0};
            made.desc.attributes.arg_reduce = {op, static_cast<int32_t>(layout.axes), last, 0};
            Dims dst = layout.dims;
            dst[layout.axes] = 1;
            add_operand(made.desc, EP_ROLE_DST, DType::i64, dst);
            add_operand(made.desc, EP_ROLE_SRC, dtype, layout.dims, layout.strides);
            cases->push_back(made);
          }
        }
      }
    }
  }
}

// The error of exp of a rounded number of magnitude up to 16: 16 half ulps, 4 for exp, one for the division, and the
// error of the sum. On the lower tiers exp has a larger error, which grows with the greatest magnitude `reach` of its
// argument, and so do the division and the logarithm. Arguments up to 16 dominate the sum of a row.
Tolerance softmax_tolerance(DType dtype, bool log, double length, double reach, Tier tier) {
  const auto more = [&](std::string_view name, double magnitude) { return beyond_full(name, tier, dtype, magnitude); };
  const bool narrow = dtype_info(dtype).bits < 32;
  const double sum = more("exp", 16).ulps;
  if (log) {
    const Bound end = more("log", 0);
    return {narrow ? 1.0 : 4.0 + end.ulps, 32 + length / 256 + sum + end.epsilons, 0};
  }
  return {narrow ? 1.0 : 40 + length / 16 + sum + more("exp", reach).ulps + more("div", 0).ulps, 0, 1};
}

void add_softmax(std::vector<Case>* cases) {
  const Dims cube = {7, 33, 5};
  const Layout softmax_layouts[] = {
      {"one", {3, 1}, {1, 1}, 1},
      {"last", cube, contiguous_strides(cube), 2},
      {"middle", cube, contiguous_strides(cube), 1},
      {"first", cube, contiguous_strides(cube), 0},
      {"rows", {37, 197}, {197, 1}, 1},
      {"wide", {3, 5003}, {5003, 1}, 1},
      {"gaps", {9, 37}, gapped_strides({9, 37}, 3), 1},
      {"transposed", cube, permuted_strides(cube, {1, 2, 0}), 1},
      {"attention", {2, 4, 16, 16}, contiguous_strides({2, 4, 16, 16}), 3},
      {"special", {53, 7}, {7, 1}, 1},
      {"peaks", {67, 67}, {67, 1}, 1},
      {"wide_peaks", {37, 5003}, {5003, 1}, 1},
  };
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const Layout& layout : softmax_layouts) {
      if (dtype != DType::f32 && layout.name != "last" && layout.name != "middle" && layout.name != "special" &&
          layout.name != "peaks") {
        continue;
      }
      for (bool log : {false, true}) {
        Values values = {layout.name == "special" ? Fill::SPECIAL : Fill::RANDOM, -8, 8};
        // exp overflows here unless the kernel subtracts the maximum of the row first.
        if (layout.name.ends_with("peaks")) values = {Fill::PEAKS, -8, dtype == DType::f64 ? 1000.0 : 200.0};
        Case made = {path("softmax", log ? "log" : "plain", dtype, layout.name),
                     make_desc(EP_PRIMITIVE_softmax),
                     {},
                     {{}, values},
                     {},
                     0};
        made.desc.attributes.softmax = {static_cast<int32_t>(layout.axes), log ? 1 : 0};
        add_operand(made.desc, EP_ROLE_DST, dtype, layout.dims, layout.strides);
        add_operand(made.desc, EP_ROLE_SRC, dtype, layout.dims, layout.strides);
        const double reach = !layout.name.ends_with("peaks") ? 16 : dtype == DType::f64 ? 709 : 88;
        set_tolerances(&made, [&](Tier tier) {
          return softmax_tolerance(dtype, log, static_cast<double>(layout.dims[layout.axes]), reach, tier);
        });
        cases->push_back(made);
      }
    }
  }
}

}  // namespace

void add_reduce_cases(std::vector<Case>* cases) {
  add_plain_reductions(cases);
  add_last_elements(cases);
  add_arg_reductions(cases);
  add_softmax(cases);
}

}  // namespace tenon::cases
