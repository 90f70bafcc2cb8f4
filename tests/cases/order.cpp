// Cases of scan, sort, top_k, unique, nonzero and one_hot, and of gather and scatter by coordinates.
#include <algorithm>
#include <set>
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::u8,     DType::i16,
                           DType::u16, DType::i32, DType::u32, DType::i64,  DType::u64, DType::boolean};

std::string path(std::string_view kind, std::string_view what, DType dtype, std::string_view layout) {
  return fmt::format("{}/{}/{}/{}", kind, what, dtype_name(dtype), layout);
}

struct Line {
  std::string_view name;
  Dims dims;
  Dims strides;
  int32_t axis;
};

// Every length from one element to more than the widest vector, and lines that are long enough for several threads.
std::vector<Line> lines() {
  const Dims cube = {5, 37, 7};
  std::vector<Line> lines = {
      {"first", cube, contiguous_strides(cube), 0},
      {"middle", cube, contiguous_strides(cube), 1},
      {"last", cube, contiguous_strides(cube), 2},
      {"transposed", cube, permuted_strides(cube, {2, 0, 1}), 1},
      {"gaps", {9, 37}, gapped_strides({9, 37}, 3), 1},
      {"columns", {300, 70}, {70, 1}, 0},
      {"rows", {37, 300}, {300, 1}, 1},
      {"four", {2, 3, 11, 2}, contiguous_strides({2, 3, 11, 2}), 2},
      {"long", {2, 4099}, {4099, 1}, 1},
      {"ones", {67, 1}, {1, 1}, 1},
      {"triples", {411, 3}, {3, 1}, 1},
      {"eight_of_nine", {33, 8}, {9, 1}, 1},
      {"seventeens", {131, 17}, {17, 1}, 1},
      {"three_columns", {300, 3}, {3, 1}, 0},
      {"vector", {70001}, {1}, 0},
  };
  for (std::string_view name : {"1", "2", "3", "7", "8", "9", "15", "16", "17", "31", "32", "33", "63", "64", "65"}) {
    int64_t n = 0;
    for (char digit : name) n = 10 * n + (digit - '0');
    lines.push_back({name, {3, n}, {n, 1}, 1});
  }
  return lines;
}

bool is_for_all_types(const Line& line) { return line.name == "middle" || line.name == "17"; }

// --- scan ---

constexpr std::string_view scan_names[] = {"", "sum", "prod", "max", "min", "log_sum_exp"};

// The error is as large as in a reduction of the whole line.
Tolerance scan_tolerance(int32_t op, DType dtype, double length, Tier tier) {
  const double step = dtype_info(dtype).bits < 32 ? 1 : 0;
  if (op == EP_SCAN_SUM) return {step, 2 * length, 0};
  if (op == EP_SCAN_PROD) return {step > 0 ? 1 : 4 + length * (1 + beyond_full("product", tier, dtype).ulps), 0, 1};
  const Bound exp = beyond_full("exp", tier, dtype, 16);
  const Bound log = beyond_full("log", tier, dtype);
  return {step + 8 + exp.ulps + log.ulps, 16 + 2 * length + exp.epsilons + log.epsilons, 0};
}

Case scan_case(int32_t op, DType dtype, const Line& line, bool exclusive, bool reverse, bool positions, Values values) {
  std::string what(scan_names[op]);
  if (exclusive) what += "_exclusive";
  if (reverse) what += "_reverse";
  if (positions) what += "_positions";
  Case made = {path("scan", what, dtype, line.name), make_desc(EP_PRIMITIVE_scan), {}, {}, {}, 0};
  made.desc.attributes.scan = {line.axis, op, exclusive ? 1 : 0, reverse ? 1 : 0};
  add_operand(made.desc, EP_ROLE_DST, dtype, line.dims, line.strides);
  if (positions) add_operand(made.desc, EP_ROLE_DST_INDICES, DType::i64, line.dims);
  add_operand(made.desc, EP_ROLE_SRC, dtype, line.dims, line.strides);
  made.values.assign(made.desc.operand_count, values);
  if (op == EP_SCAN_MAX || op == EP_SCAN_MIN) return made;
  set_tolerances(&made,
                 [&](Tier tier) { return scan_tolerance(op, dtype, static_cast<double>(line.dims[line.axis]), tier); });
  return made;
}

Values scanned_values(int32_t op, DType dtype) {
  if (!is_floating(dtype)) return {Fill::SPECIAL, -100, 100};
  switch (op) {
    case EP_SCAN_PROD: return {Fill::RANDOM, 0.9, 1.1};
    case EP_SCAN_SUM: return {Fill::RANDOM, -1, 1};
    default: return {Fill::RANDOM, -8, 8};
  }
}

void add_scans(std::vector<Case>* cases) {
  for (int32_t op : {EP_SCAN_SUM, EP_SCAN_PROD, EP_SCAN_MAX, EP_SCAN_MIN, EP_SCAN_LOG_SUM_EXP}) {
    const bool selects = op == EP_SCAN_MAX || op == EP_SCAN_MIN;
    for (DType dtype : types) {
      if (op == EP_SCAN_LOG_SUM_EXP && !is_floating(dtype)) continue;
      if (dtype == DType::boolean && !selects) continue;
      for (const Line& line : lines()) {
        if (dtype != DType::f32 && !is_for_all_types(line)) continue;
        if (op == EP_SCAN_PROD && line.dims[line.axis] > 1000) continue;
        const Values values = scanned_values(op, dtype);
        for (int mode = 0; mode < 4; ++mode) {
          if (mode != 0 && line.name != "middle" && line.name != "long" && line.name != "17") continue;
          cases->push_back(scan_case(op, dtype, line, (mode & 1) != 0, (mode & 2) != 0, false, values));
        }
        if (!selects) continue;
        cases->push_back(scan_case(op, dtype, line, false, false, true, {Fill::TIES, -3, 3}));
        cases->push_back(scan_case(op, dtype, line, false, true, true, {Fill::SPECIAL, -3, 3}));
      }
    }
  }
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (int32_t op : {EP_SCAN_MAX, EP_SCAN_MIN}) {
      cases->push_back(
          scan_case(op, dtype, {"special", {5, 61}, {61, 1}, 1}, true, false, false, {Fill::SPECIAL, -3, 3}));
    }
    cases->push_back(scan_case(EP_SCAN_LOG_SUM_EXP, dtype, {"peaks", {67, 67}, {67, 1}, 1}, false, false, false,
                               {Fill::PEAKS, -8, 200}));
  }
}

// --- sort and top_k ---

// The outputs that a case has.
struct Outputs {
  std::string_view name;
  bool values, positions;
};
constexpr Outputs all_outputs[] = {{"both", true, true}, {"values", true, false}, {"positions", false, true}};

Case sort_case(DType dtype, const Line& line, bool descending, const Outputs& outputs, Fill fill) {
  const std::string_view filled = fill == Fill::RANDOM ? "" : fill == Fill::SPECIAL ? "_special" : "_ties";
  Case made = {path("sort", descending ? "descending" : "ascending", dtype,
                    fmt::format("{}_{}{}", line.name, outputs.name, filled)),
               make_desc(EP_PRIMITIVE_sort),
               {},
               {},
               {},
               0};
  made.desc.attributes.sort = {line.axis, descending ? 1 : 0};
  if (outputs.values) add_operand(made.desc, EP_ROLE_DST, dtype, line.dims);
  if (outputs.positions) add_operand(made.desc, EP_ROLE_DST_INDICES, DType::i64, line.dims);
  add_operand(made.desc, EP_ROLE_SRC, dtype, line.dims, line.strides);
  made.values.assign(made.desc.operand_count, {fill, -100, 100});
  return made;
}

void add_sorts(std::vector<Case>* cases) {
  for (DType dtype : types) {
    for (const Line& line : lines()) {
      if (dtype != DType::f32 && !is_for_all_types(line)) continue;
      for (bool descending : {false, true}) {
        for (const Outputs& outputs : all_outputs) {
          if (dtype != DType::f32 && dtype != DType::i64 && outputs.name != "both") continue;
          cases->push_back(sort_case(dtype, line, descending, outputs, Fill::RANDOM));
        }
        cases->push_back(sort_case(dtype, line, descending, all_outputs[0], Fill::SPECIAL));
        cases->push_back(sort_case(dtype, line, descending, all_outputs[0], Fill::TIES));
      }
    }
  }
}

void add_top_k(std::vector<Case>* cases) {
  for (DType dtype : types) {
    for (const Line& line : lines()) {
      if (dtype != DType::f32 && !is_for_all_types(line)) continue;
      for (bool largest : {false, true}) {
        const int64_t length = line.dims[line.axis];
        for (int64_t k : std::set<int64_t>{1, 5, 64, length}) {
          if (k > length || k > 5000 || (k != 5 && dtype != DType::f32)) continue;
          for (const Outputs& outputs : all_outputs) {
            if (outputs.name != "both" && (dtype != DType::f32 || k != 5)) continue;
            for (Fill fill : {Fill::RANDOM, Fill::SPECIAL, Fill::TIES}) {
              if (fill != Fill::RANDOM && (outputs.name != "both" || k != 5)) continue;
              Case made = sort_case(dtype, line, largest, outputs, fill);
              made.desc.kind = EP_PRIMITIVE_top_k;
              made.name = fmt::format("top_k/{}_{}/{}", largest ? "largest" : "smallest", k,
                                      made.name.substr(made.name.find('/', 5) + 1));
              for (uint32_t i = 0; i + 1 < made.desc.operand_count; ++i) {
                ep_operand_desc& output = made.desc.operands[i];
                output.dims[line.axis] = k;
                const Dims strides = contiguous_strides(Dims({output.dims, static_cast<size_t>(output.rank)}));
                std::copy(strides.begin(), strides.end(), output.strides);
              }
              cases->push_back(made);
            }
          }
        }
      }
    }
  }
}

// --- unique ---

struct UniqueShape {
  std::string_view name;
  Dims dims;
  int32_t axis;
  Dims strides;
};

void add_uniques(std::vector<Case>* cases) {
  const UniqueShape shapes[] = {
      {"one", {1}, -1, {1}},
      {"vector", {1037}, -1, {1}},
      {"matrix", {9, 31}, -1, {31, 1}},
      {"transposed", {9, 31}, -1, {1, 9}},
      {"long", {5003}, -1, {1}},
      {"first", {29, 2}, 0, {2, 1}},
      {"middle", {2, 35, 1}, 1, {35, 1, 1}},
      {"last", {2, 33}, 2 - 1, {33, 1}},
      {"wide", {11, 40}, 0, {40, 1}},
  };
  constexpr std::string_view orders[] = {"", "sorted", "first", "consecutive"};
  for (int32_t order : {EP_UNIQUE_SORTED, EP_UNIQUE_FIRST, EP_UNIQUE_CONSECUTIVE}) {
    for (DType dtype : types) {
      for (const UniqueShape& shape : shapes) {
        if (dtype != DType::f32 && shape.name != "matrix" && shape.name != "first") continue;
        for (Fill fill : {Fill::RANDOM, Fill::SPECIAL, Fill::TIES}) {
          for (bool all : {true, false}) {
            if (!all && (dtype != DType::f32 || fill != Fill::TIES)) continue;
            const std::string_view filled = fill == Fill::RANDOM ? "" : fill == Fill::SPECIAL ? "_special" : "_ties";
            Case made = {
                path("unique", orders[order], dtype, fmt::format("{}{}{}", shape.name, filled, all ? "" : "_values")),
                make_desc(EP_PRIMITIVE_unique),
                {},
                {},
                {},
                0};
            made.desc.attributes.unique = {shape.axis, order};
            int64_t n = 1;
            for (int64_t dim : shape.dims) n *= dim;
            if (shape.axis >= 0) n = shape.dims[shape.axis];
            add_operand(made.desc, EP_ROLE_DST, dtype, shape.axis < 0 ? Dims{n} : shape.dims);
            if (all) add_operand(made.desc, EP_ROLE_DST_INDICES, DType::i64, {n});
            add_operand(made.desc, EP_ROLE_DST_COUNT, DType::i64, {1});
            if (all) add_operand(made.desc, EP_ROLE_DST_INVERSE, DType::i64, {n});
            if (all) add_operand(made.desc, EP_ROLE_DST_COUNTS, DType::i64, {n});
            add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, shape.strides);
            made.values.assign(made.desc.operand_count, {fill, -30, 30});
            cases->push_back(made);
          }
        }
      }
    }
  }
}

// --- nonzero and one_hot ---

void add_nonzeros(std::vector<Case>* cases) {
  struct Shape {
    std::string_view name;
    Dims dims, strides;
    int64_t rows;
  };
  const Shape shapes[] = {
      {"one", {1}, {1}, 1},
      {"vector", {1037}, {1}, 1037},
      {"matrix", {33, 17}, {17, 1}, 561},
      {"transposed", {33, 17}, {1, 33}, 561},
      {"gaps", {9, 33}, {36, 1}, 297},
      {"cube", {4, 5, 70}, {350, 70, 1}, 1400},
      {"few_rows", {4, 70}, {70, 1}, 9},
      {"more_rows", {4, 7}, {7, 1}, 40},
      {"long", {3, 50021}, {50021, 1}, 150063},
  };
  for (DType dtype : types) {
    for (const Shape& shape : shapes) {
      if (dtype != DType::f32 && dtype != DType::boolean && shape.name != "matrix") continue;
      for (Fill fill : {Fill::INDEX, Fill::SPECIAL}) {
        Case made = {path("nonzero", fill == Fill::INDEX ? "some" : "special", dtype, shape.name),
                     make_desc(EP_PRIMITIVE_nonzero),
                     {},
                     {{}, {}, {fill, 0, fill == Fill::INDEX ? 1.0 : 100.0}},
                     {},
                     0};
        add_operand(made.desc, EP_ROLE_DST, DType::i64, {shape.rows, shape.dims.rank()});
        add_operand(made.desc, EP_ROLE_DST_COUNT, DType::i64, {1});
        add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims, shape.strides);
        cases->push_back(made);
      }
    }
  }
}

void add_one_hots(std::vector<Case>* cases) {
  struct Shape {
    std::string_view name;
    Dims src, dst;
    int32_t axis;
  };
  const Shape shapes[] = {
      {"last", {17}, {17, 9}, 1},    {"first", {5, 7}, {9, 5, 7}, 0},      {"middle", {5, 7}, {5, 9, 7}, 1},
      {"one_class", {5}, {5, 1}, 1}, {"many_classes", {40}, {40, 301}, 1},
  };
  for (DType dtype : types) {
    for (const Shape& shape : shapes) {
      for (DType index_type : {DType::i64, DType::i32}) {
        if (dtype != DType::f32 && (shape.name != "middle" || index_type == DType::i32)) continue;
        const bool is_bool = dtype == DType::boolean;
        Case made = {path("one_hot", "indices", dtype, fmt::format("{}_{}", shape.name, dtype_name(index_type))),
                     make_desc(EP_PRIMITIVE_one_hot),
                     {make_scalar(dtype, is_bool ? 0 : 2), make_scalar(dtype, is_bool ? 1 : 3)},
                     {{}, {Fill::INDEX, -12, 12}},
                     {},
                     0};
        made.desc.attributes.one_hot = {shape.axis, 0};
        add_operand(made.desc, EP_ROLE_DST, dtype, shape.dst);
        add_operand(made.desc, EP_ROLE_SRC, index_type, shape.src);
        cases->push_back(made);
      }
    }
  }
}

// --- coordinates ---

struct Places {
  std::string_view name;
  Dims src;
  int32_t batch;
  Dims indices;  // the last axis holds the coordinates
  Dims taken;
};

Case coordinates_case(const Places& places, DType dtype, DType index_type, int32_t op) {
  constexpr std::string_view op_names[] = {"", "assign", "add", "mul", "min", "max"};
  const std::string name = fmt::format("{}_{}", places.name, dtype_name(index_type));
  Case made = {op == 0 ? path("gather", "coordinates", dtype, name)
                       : path("scatter", fmt::format("{}_coordinates", op_names[op]), dtype, name),
               make_desc(op == 0 ? EP_PRIMITIVE_gather : EP_PRIMITIVE_scatter),
               {},
               {},
               {},
               0};
  add_operand(made.desc, EP_ROLE_DST, dtype, op == 0 ? places.taken : places.src);
  add_operand(made.desc, EP_ROLE_SRC, dtype, places.src);
  if (op == 0) {
    made.desc.attributes.gather = {places.batch, EP_GATHER_COORDINATES};
  } else {
    made.desc.attributes.scatter = {places.batch, EP_GATHER_COORDINATES, op, 0};
    add_operand(made.desc, EP_ROLE_SRC_B, dtype, places.taken);
  }
  add_operand(made.desc, EP_ROLE_INDICES, index_type, places.indices);
  const int64_t count = places.indices[places.indices.rank() - 1];
  const auto shortest = static_cast<double>(
      *std::min_element(places.src.begin() + places.batch, places.src.begin() + places.batch + count));
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  made.values.back() = {Fill::INDEX, -shortest, shortest - 1};
  if (op == EP_SCATTER_ADD || op == EP_SCATTER_MUL) {
    set_tolerances(&made, [&](Tier tier) -> Tolerance {
      const double updates = 64;
      const double more = beyond_full("product", tier, dtype).ulps;
      return {dtype_info(dtype).bits < 32 ? 1.0 : updates * (1 + more), 4 * updates * (1 + more), 0};
    });
  }
  return made;
}

void add_coordinates(std::vector<Case>* cases) {
  const Places all_places[] = {
      {"elements", {9, 17}, 0, {30, 2}, {30}},
      {"rows", {9, 17}, 0, {12, 1}, {12, 17}},
      {"slices", {5, 6, 7, 3}, 0, {4, 3, 2}, {4, 3, 7, 3}},
      {"batch", {4, 6, 7, 3}, 1, {4, 9, 2}, {4, 9, 3}},
      {"two_batches", {3, 4, 6, 5}, 2, {3, 4, 2, 1}, {3, 4, 2, 5}},
      {"batch_of_one", {4, 6, 7}, 1, {4, 2}, {4}},
      {"many", {50, 40}, 0, {3000, 2}, {3000}},
  };
  for (int32_t op : {0, EP_SCATTER_ASSIGN, EP_SCATTER_ADD, EP_SCATTER_MUL, EP_SCATTER_MIN, EP_SCATTER_MAX}) {
    for (DType dtype : types) {
      if (dtype == DType::boolean && op > EP_SCATTER_ASSIGN) continue;
      for (const Places& places : all_places) {
        if (dtype != DType::f32 && places.name != "slices" && places.name != "batch") continue;
        cases->push_back(coordinates_case(places, dtype, DType::i64, op));
        if (dtype == DType::f32) cases->push_back(coordinates_case(places, dtype, DType::i32, op));
      }
    }
    if (op > EP_SCATTER_ADD) continue;
    for (int64_t beyond : {9, -10}) {
      Case fault = coordinates_case({beyond > 0 ? "beyond_above" : "beyond_below", {9, 9, 5}, 0, {6, 2}, {6, 5}},
                                    DType::f32, DType::i64, op);
      const auto at = static_cast<double>(beyond);
      fault.values.back() = {Fill::INDEX, beyond > 0 ? 0.0 : at, beyond > 0 ? at : 3.0};
      fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
      cases->push_back(fault);
    }
  }
}

}  // namespace

void add_order_cases(std::vector<Case>* cases) {
  add_scans(cases);
  add_sorts(cases);
  add_top_k(cases);
  add_uniques(cases);
  add_nonzeros(cases);
  add_one_hots(cases);
  add_coordinates(cases);
}

}  // namespace tenon::cases
