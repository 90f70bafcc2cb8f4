// Cases of unary, binary and ternary: every scalar function of scalar_ops.def on every dtype that it takes.
#include <string_view>

#include "primitives/table/table.h"
#include "tests/cases/case.h"
#include "tests/cases/range.h"

namespace tenon::cases {
namespace {

using table::Domain;
using table::ScalarRow;

constexpr DType all_types[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

// The inputs and tolerances of scalar functions. A function without an entry is exact, because it is one IEEE operation
// or none, or it is a function of the prelude. The tolerance of these is their bound in accuracy.def; the rounding of
// the reference adds 1 ulp. A composite adds the errors of its parts; `epsilons` are for functions that cancel.
struct UnaryRule {
  std::string_view name;
  double low;
  double high;
  Tolerance tolerance;
  Saturation saturation = {};
};

constexpr UnaryRule unary_rules[] = {
    {"exp", -80, 80, {0, 0, 1}},
    {"exp2", -80, 80, {0, 0, 1}},
    {"expm1", -5, 60, {0, 0, 1}},
    {"log", 0.01, 50, {}},
    {"log1p", -0.9, 50, {}},
    {"log2", 0.01, 50, {}},
    {"log10", 0.01, 50, {}},
    {"sin", -100, 100, {}},
    {"cos", -100, 100, {}},
    {"tan", -100, 100, {}},
    {"asin", -1.1, 1.1, {}},
    {"acos", -1.1, 1.1, {}},
    {"atan", -20, 20, {}},
    {"sinh", -80, 80, {}},
    {"cosh", -80, 80, {}},
    {"tanh", -10, 10, {}, {1, 20}},
    {"asinh", -50, 50, {}},
    {"acosh", 0.9, 50, {}},
    {"atanh", -1.1, 1.1, {}},
    {"erf", -4, 4, {}, {1, 6}},
    {"erfc", -4, 9, {0, 0, 1}},
    {"lgamma", -6, 40, {}},
    {"digamma", -6, 40, {}},
    {"rsqrt", 0.01, 50, {2, 0, 0}},
    {"sigmoid", -20, 20, {8, 0, 1}},
    {"silu", -20, 20, {8, 0, 128}},
    {"gelu", -8, 8, {8, 32, 0}},
    {"gelu_tanh", -8, 8, {8, 64, 0}},
    {"softplus", -20, 20, {10, 0, 1}},
    {"softsign", -20, 20, {2, 0, 0}},
    {"mish", -20, 20, {16, 0, 128}},
    {"elu", -8, 8, {6, 0, 0}},
    {"celu", -8, 8, {8, 0, 0}},
    {"selu", -8, 8, {8, 0, 0}},
    {"hard_sigmoid", -8, 8, {1, 4, 0}},
    {"hard_swish", -8, 8, {2, 16, 0}},
    {"log_sigmoid", -20, 20, {10, 0, 1}},
    {"sinc", -8, 8, {8, 4, 0}},
    {"tanhshrink", -8, 8, {8, 8, 0}},
};

UnaryRule unary_rule(std::string_view name) {
  UnaryRule found = {name, -8, 8, {}, {}};
  for (const UnaryRule& rule : unary_rules) {
    if (rule.name == name) found = rule;
  }
  for (const FloatFunction& function : float_functions()) {
    const double bound = function.name == name ? accuracy_row(name).full : 0;
    if (bound < 1) continue;
    found.tolerance.ulps = bound + 1;
    found.tolerance.epsilons = function.near_roots;
  }
  return found;
}

// Narrow types compute in f32 and round once, so the result is at most one step off. f64 is compared with a reference
// whose functions are no better than the provider's, so its bound is twice as wide.
Tolerance on_type(Tolerance tolerance, DType dtype) {
  if (tolerance.ulps == 0 || !is_floating(dtype)) return tolerance;
  if (dtype == DType::f64) tolerance.ulps *= 2;
  if (dtype_info(dtype).bits < 32) tolerance.ulps = 1;
  return tolerance;
}

struct Layout {
  std::string_view name;
  Dims dims;
  Dims dst;
  Dims src;
};

std::vector<Layout> unary_layouts() {
  const Dims matrix = {17, 23};
  const Dims cube = {3, 5, 7, 4};
  return {
      {"one", {1}, {1}, {1}},
      {"three", {3}, {1}, {1}},
      {"vector", {1037}, {1}, {1}},
      {"long", {70001}, {1}, {1}},
      {"src_stride_2", {67}, {1}, {2}},
      {"dst_stride_3", {67}, {3}, {1}},
      {"src_transposed", matrix, contiguous_strides(matrix), permuted_strides(matrix, {1, 0})},
      {"dst_transposed", matrix, permuted_strides(matrix, {1, 0}), contiguous_strides(matrix)},
      {"both_transposed", matrix, permuted_strides(matrix, {1, 0}), permuted_strides(matrix, {1, 0})},
      {"gaps", {9, 37}, gapped_strides({9, 37}, 4), gapped_strides({9, 37}, 1)},
      {"src_rows_repeat", {9, 37}, contiguous_strides({9, 37}), {0, 1}},
      {"src_columns_repeat", {9, 37}, contiguous_strides({9, 37}), {1, 0}},
      {"rank4_permuted", cube, contiguous_strides(cube), permuted_strides(cube, {2, 0, 3, 1})},
      {"rank8",
       {2, 1, 3, 2, 1, 2, 3, 2},
       contiguous_strides({2, 1, 3, 2, 1, 2, 3, 2}),
       permuted_strides({2, 1, 3, 2, 1, 2, 3, 2}, {7, 6, 5, 4, 3, 2, 1, 0})},
  };
}

std::string path(std::string_view kind, std::string_view op, DType dtype, std::string_view layout) {
  std::string name(kind);
  name.append("/").append(op).append("/").append(dtype_name(dtype)).append("/").append(layout);
  return name;
}

Case unary_case(const ScalarRow& row, DType dtype, const Layout& layout, Values values) {
  Case made = {path("unary", row.name, dtype, layout.name), make_desc(EP_PRIMITIVE_unary), {}, {}, {}, 0};
  made.desc.attributes.unary.op = row.id;
  add_operand(made.desc, EP_ROLE_DST, table::result_dtype(row, dtype), layout.dims, layout.dst);
  add_operand(made.desc, EP_ROLE_SRC, dtype, layout.dims, layout.src);
  const bool unsigned_type =
      dtype_info(dtype).type_class != DTypeClass::FLOAT && dtype_info(dtype).type_class != DTypeClass::INT;
  const double parameters[] = {is_floating(dtype) ? 0.25 : (unsigned_type ? 2 : 3), is_floating(dtype) ? 0.5 : 1};
  for (int32_t i = 0; i < row.parameters; ++i) made.scalars.push_back(make_scalar(dtype, parameters[i]));
  made.values = {{}, values};
  made.tolerance = on_type(unary_rule(row.name).tolerance, dtype);
  made.saturation = unary_rule(row.name).saturation;
  return made;
}

void add_unary_cases(std::vector<Case>* cases) {
  const Layout special = {"special", {347}, {1}, {1}};
  for (const ScalarRow& row : table::unary_rows()) {
    const UnaryRule rule = unary_rule(row.name);
    const bool periodic = row.name == "sin" || row.name == "cos" || row.name == "tan" || row.name == "sinc";
    for (DType dtype : all_types) {
      if (!table::in_domain(row.domain, dtype)) continue;
      const Fill fill = periodic ? Fill::FINITE : Fill::SPECIAL;
      cases->push_back(unary_case(row, dtype, special, {fill, periodic ? -1e5 : rule.low, periodic ? 1e5 : rule.high}));
      if (dtype != DType::f32 && dtype != DType::f16 && row.id != EP_UNARY_neg && row.id != EP_UNARY_logical_not)
        continue;
      if (dtype_info(dtype).bits < 8) continue;
      for (const Layout& layout : unary_layouts()) {
        const bool few = dtype == DType::f32 && row.id != EP_UNARY_relu && row.id != EP_UNARY_exp;
        if (few && layout.name != "vector" && layout.name != "gaps") continue;
        if (dtype != DType::f32 && (row.id != EP_UNARY_neg && row.id != EP_UNARY_logical_not)) continue;
        cases->push_back(unary_case(row, dtype, layout, {Fill::RANDOM, rule.low, rule.high}));
      }
    }
  }
}

// --- binary ---

struct BinaryLayout {
  std::string_view name;
  Dims dims;
  Dims dst;
  Dims a;  // empty: a scalar
  Dims b;
};

std::vector<BinaryLayout> binary_layouts() {
  const Dims matrix = {19, 37};
  const Dims rows = contiguous_strides(matrix);
  const Dims cube = {3, 5, 7, 4};
  return {
      {"one", {1}, {1}, {1}, {1}},
      {"vector", {1037}, {1}, {1}, {1}},
      {"long", {70001}, {1}, {1}, {1}},
      {"scalar_left", {259}, {1}, {}, {1}},
      {"scalar_right", {259}, {1}, {1}, {}},
      {"repeat_left", {259}, {1}, {0}, {1}},
      {"repeat_right", {259}, {1}, {1}, {0}},
      {"row_right", matrix, rows, rows, {0, 1}},
      {"column_right", matrix, rows, rows, {1, 0}},
      {"row_left_column_right", matrix, rows, {0, 1}, {1, 0}},
      {"transposed_right", matrix, rows, rows, permuted_strides(matrix, {1, 0})},
      {"all_transposed", matrix, permuted_strides(matrix, {1, 0}), permuted_strides(matrix, {1, 0}),
       permuted_strides(matrix, {1, 0})},
      {"gaps", matrix, gapped_strides(matrix, 3), gapped_strides(matrix, 1), gapped_strides(matrix, 5)},
      {"stride_2", {131}, {1}, {2}, {3}},
      {"rank4_middle", cube, contiguous_strides(cube), contiguous_strides(cube), {0, 4, 0, 1}},
      {"rank4_channel", cube, contiguous_strides(cube), contiguous_strides(cube), {0, 1, 0, 0}},
  };
}

struct BinaryRule {
  std::string_view name;
  Values a;
  Values b;
  Tolerance tolerance;
};

constexpr BinaryRule binary_rules[] = {
    {"floor_div", {Fill::GRID, -8, 8}, {Fill::GRID, -8, 8}, {}},
    {"mod", {Fill::GRID, -8, 8}, {Fill::GRID, -8, 8}, {}},
    {"fmod", {Fill::GRID, -8, 8}, {Fill::GRID, -8, 8}, {}},
    {"pow", {Fill::RANDOM, 0.1, 4}, {Fill::RANDOM, -3, 3}, {17, 0, 0}},
    {"atan2", {Fill::RANDOM, -8, 8}, {Fill::RANDOM, -8, 8}, {8, 0, 1}},
    {"hypot", {Fill::RANDOM, -8, 8}, {Fill::RANDOM, -8, 8}, {4, 0, 1}},
    {"logaddexp", {Fill::RANDOM, -8, 8}, {Fill::RANDOM, -8, 8}, {10, 16, 1}},
    {"logaddexp2", {Fill::RANDOM, -8, 8}, {Fill::RANDOM, -8, 8}, {10, 32, 1}},
    {"xlogy", {Fill::RANDOM, -8, 8}, {Fill::RANDOM, 0.1, 8}, {6, 0, 1}},
    {"eq", {Fill::TIES, -2, 2}, {Fill::TIES, -2, 2}, {}},
    {"ne", {Fill::TIES, -2, 2}, {Fill::TIES, -2, 2}, {}},
    {"le", {Fill::TIES, -2, 2}, {Fill::TIES, -2, 2}, {}},
    {"ge", {Fill::TIES, -2, 2}, {Fill::TIES, -2, 2}, {}},
    {"shift_left", {Fill::RANDOM, -100, 100}, {Fill::INDEX, 0, 9}, {}},
    {"shift_right", {Fill::RANDOM, -100, 100}, {Fill::INDEX, 0, 9}, {}},
};

BinaryRule binary_rule(std::string_view name) {
  for (const BinaryRule& rule : binary_rules) {
    if (rule.name == name) return rule;
  }
  return {name, {Fill::RANDOM, -8, 8}, {Fill::RANDOM, -8, 8}, {}};
}

Case binary_case(const ScalarRow& row, DType dtype, const BinaryLayout& layout, Values a, Values b) {
  Case made = {path("binary", row.name, dtype, layout.name), make_desc(EP_PRIMITIVE_binary), {}, {}, {}, 0};
  made.desc.attributes.binary.op = row.id;
  add_operand(made.desc, EP_ROLE_DST, table::result_dtype(row, dtype), layout.dims, layout.dst);
  const bool integer = !is_floating(dtype);
  const bool checked = row.check == table::Check::DIVISOR && integer;
  if (checked) b = {Fill::DIVISOR, -8, 8};
  if (integer && a.fill == Fill::GRID) a.fill = Fill::RANDOM;
  const struct {
    int32_t role;
    const Dims& strides;
  } sides[] = {{EP_ROLE_SRC, layout.a}, {EP_ROLE_SRC_B, layout.b}};
  made.scalars = {make_scalar(dtype, dtype == DType::boolean ? 1 : 5),
                  make_scalar(dtype, dtype == DType::boolean ? 1 : 3)};
  for (const auto& side : sides) {
    if (side.strides.empty()) {
      add_scalar_operand(made.desc, side.role, dtype);
    } else {
      add_operand(made.desc, side.role, dtype, layout.dims, side.strides);
    }
  }
  made.values = {{}, a, b};
  made.tolerance = on_type(binary_rule(row.name).tolerance, dtype);
  return made;
}

// Divisors at which a processor's division traps: 0 is a fault; the quotient of the least integer and -1 wraps.
void add_divisor_cases(const ScalarRow& row, DType dtype, std::vector<Case>* cases) {
  const BinaryLayout by_zero = {"divide_by_zero", {53}, {1}, {1}, {1}};
  Case made = binary_case(row, dtype, by_zero, {Fill::SPECIAL, -8, 8}, {});
  made.values[2] = {Fill::INDEX, 0, 3};
  made.fault = EP_FAULT_DIVISION_BY_ZERO;
  cases->push_back(made);
  if (dtype_info(dtype).type_class != DTypeClass::INT) return;
  const BinaryLayout by_minus_one = {"least_by_minus_one", {53}, {1}, {1}, {1}};
  made = binary_case(row, dtype, by_minus_one, {Fill::SPECIAL, -8, 8}, {});
  made.values[2] = {Fill::INDEX, -1, -1};
  cases->push_back(made);
  const BinaryLayout by_scalar = {"least_by_scalar_minus_one", {53}, {1}, {1}, {}};
  made = binary_case(row, dtype, by_scalar, {Fill::SPECIAL, -8, 8}, {});
  made.scalars[1] = make_scalar(dtype, -1);
  cases->push_back(made);
}

void add_binary_cases(std::vector<Case>* cases) {
  const BinaryLayout special = {"special", {901}, {1}, {1}, {1}};
  for (const ScalarRow& row : table::binary_rows()) {
    const BinaryRule rule = binary_rule(row.name);
    for (DType dtype : all_types) {
      if (!table::in_domain(row.domain, dtype)) continue;
      const bool stepwise = rule.a.fill == Fill::GRID && is_floating(dtype);
      cases->push_back(stepwise ? binary_case(row, dtype, special, rule.a, rule.b)
                                : binary_case(row, dtype, special, {Fill::SPECIAL_A, -8, 8}, {Fill::SPECIAL_B, -8, 8}));
      if (dtype_info(dtype).bits < 8) continue;
      const bool whole = dtype == DType::f32 || dtype == DType::i32;
      for (const BinaryLayout& layout : binary_layouts()) {
        const bool wide =
            row.id == EP_BINARY_add || (row.id == EP_BINARY_lt && whole) || (row.id == EP_BINARY_eq && whole);
        const bool some = layout.name == "vector" || layout.name == "scalar_right" || layout.name == "row_right";
        if (!wide && !(whole && some)) continue;
        if (row.id == EP_BINARY_add && layout.name == "long" && !whole) continue;
        cases->push_back(binary_case(row, dtype, layout, rule.a, rule.b));
      }
      if (row.check != table::Check::DIVISOR || is_floating(dtype)) continue;
      add_divisor_cases(row, dtype, cases);
    }
  }
}

// --- ternary ---

struct TernaryLayout {
  std::string_view name;
  Dims dims;
  Dims dst;
  Dims sources[3];  // empty: a scalar
};

std::vector<TernaryLayout> ternary_layouts() {
  const Dims matrix = {19, 37};
  const Dims rows = contiguous_strides(matrix);
  const Dims columns = permuted_strides(matrix, {1, 0});
  return {
      {"special", {997}, {1}, {{1}, {1}, {1}}},
      {"one", {1}, {1}, {{1}, {1}, {1}}},
      {"vector", {1037}, {1}, {{1}, {1}, {1}}},
      {"scalars", {259}, {1}, {{1}, {}, {}}},
      {"scalar_last", {259}, {1}, {{1}, {1}, {}}},
      {"broadcast", matrix, rows, {{0, 1}, {1, 0}, rows}},
      {"transposed", matrix, rows, {columns, rows, columns}},
      {"gaps", matrix, gapped_strides(matrix, 2), {gapped_strides(matrix, 1), rows, {0, 0}}},
  };
}

void add_ternary_cases(std::vector<Case>* cases) {
  for (const ScalarRow& row : table::ternary_rows()) {
    const bool conditional = row.domain == Domain::COND;
    for (DType dtype : all_types) {
      if (!table::in_domain(row.domain, dtype)) continue;
      for (const TernaryLayout& layout : ternary_layouts()) {
        const bool special = layout.name == "special";
        const bool whole = dtype == DType::f32 || (conditional && dtype != DType::i4 && dtype != DType::u4);
        if (!special && !whole) continue;
        Case made = {path("ternary", row.name, dtype, layout.name), make_desc(EP_PRIMITIVE_ternary), {}, {}, {}, 0};
        made.desc.attributes.ternary.op = row.id;
        add_operand(made.desc, EP_ROLE_DST, dtype, layout.dims, layout.dst);
        made.values.push_back({});
        for (int32_t i = 0; i < 3; ++i) {
          const DType type = conditional && i == 0 ? DType::boolean : dtype;
          const Dims& strides = layout.sources[i];
          if (strides.empty()) {
            add_scalar_operand(made.desc, EP_ROLE_SRC + i, type);
          } else {
            add_operand(made.desc, EP_ROLE_SRC + i, type, layout.dims, strides);
          }
          const bool extremes = special && row.id != EP_TERNARY_fma && row.id != EP_TERNARY_lerp;
          const Fill fills[] = {Fill::SPECIAL_A, Fill::SPECIAL_B, Fill::RANDOM};
          made.values.push_back({extremes ? fills[i] : Fill::RANDOM, -2, 2});
          made.scalars.push_back(make_scalar(type, type == DType::boolean ? i % 2 : 1 + i));
        }
        if (row.id == EP_TERNARY_fma || row.id == EP_TERNARY_lerp) made.tolerance = on_type({1, 8, 0}, dtype);
        cases->push_back(made);
      }
    }
  }
}

}  // namespace

void add_elementwise_cases(std::vector<Case>* cases) {
  add_unary_cases(cases);
  add_binary_cases(cases);
  add_ternary_cases(cases);
}

}  // namespace tenon::cases
