#include "primitives/table/table.h"

#include <algorithm>

#include "primitives/text/format.h"

namespace tenon::table {
namespace {

constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// True if `expression` reads the one-letter name `name`.
constexpr bool reads(std::string_view expression, char name) {
  for (size_t i = 0; i < expression.size(); ++i) {
    const bool starts = i == 0 || !is_name_char(expression[i - 1]);
    const bool ends = i + 1 == expression.size() || !is_name_char(expression[i + 1]);
    if (expression[i] == name && starts && ends) return true;
  }
  return false;
}

constexpr int32_t parameters_of(std::string_view expression) {
  if (reads(expression, 'b')) return 2;
  return reads(expression, 'a') ? 1 : 0;
}

constexpr int32_t EP_ROLE_NONE = 0;

constexpr KindRow kind_rows[] = {
#define EP_PRIMITIVE(name, id, attributes, alias) {#name, id, sizeof(attributes), EP_ROLE_##alias},
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE
};

constexpr ScalarRow unaries[] = {
#define EP_UNARY(name, id, domain, result, expression) \
  {#name, id, Domain::domain, ResultType::result, Check::NONE, parameters_of(#expression)},
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
};

constexpr ScalarRow binaries[] = {
#define EP_BINARY(name, id, domain, result, check, expression) \
  {#name, id, Domain::domain, ResultType::result, Check::check, 0},
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
};

constexpr ScalarRow ternaries[] = {
#define EP_TERNARY(name, id, domain, result, expression) \
  {#name, id, Domain::domain, ResultType::result, Check::NONE, 0},
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
};

constexpr ReduceRow reductions[] = {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) {#name, id, Domain::domain},
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
};

// Ids increase with the rows and have few gaps, so the row of an id is at or before position id - 1.
template <class Row, size_t n>
const Row* find_id(const Row (&rows)[n], int32_t id) {
  if (id < 1) return nullptr;
  for (size_t i = std::min(static_cast<size_t>(id), n); i-- > 0;) {
    if (rows[i].id == id) return &rows[i];
  }
  return nullptr;
}

template <class Row>
const Row* find_name(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

struct RoleRow {
  int32_t role;
  int32_t count;  // above 1: a series, role + i
  std::string_view name;
};

constexpr RoleRow roles[] = {
    {EP_ROLE_DST, 1, "dst"},
    {EP_ROLE_SRC, 1, "src"},
    {EP_ROLE_SRC_B, 1, "src_b"},
    {EP_ROLE_SRC_C, 1, "src_c"},
    {EP_ROLE_WEIGHT, 1, "weight"},
    {EP_ROLE_BIAS, 1, "bias"},
    {EP_ROLE_SCALE, 1, "scale"},
    {EP_ROLE_SHIFT, 1, "shift"},
    {EP_ROLE_MEAN, 1, "mean"},
    {EP_ROLE_VARIANCE, 1, "variance"},
    {EP_ROLE_INV_STD, 1, "inv_std"},
    {EP_ROLE_INDICES, 1, "indices"},
    {EP_ROLE_DST_INDICES, 1, "dst_indices"},
    {EP_ROLE_GRADIENT, 1, "gradient"},
    {EP_ROLE_DST_COUNT, 1, "dst_count"},
    {EP_ROLE_DST_INVERSE, 1, "dst_inverse"},
    {EP_ROLE_DST_COUNTS, 1, "dst_counts"},
    {EP_ROLE_EPILOGUE_0, EP_MAX_EPILOGUES, "epilogue_"},
    {EP_ROLE_SRC_SCALE, 1, "src_scale"},
    {EP_ROLE_SRC_ZERO_POINT, 1, "src_zero_point"},
    {EP_ROLE_WEIGHT_SCALE, 1, "weight_scale"},
    {EP_ROLE_WEIGHT_ZERO_POINT, 1, "weight_zero_point"},
    {EP_ROLE_DST_SCALE, 1, "dst_scale"},
    {EP_ROLE_DST_ZERO_POINT, 1, "dst_zero_point"},
    {EP_ROLE_SCALE_GRADIENT, 1, "scale_gradient"},
    {EP_ROLE_SHIFT_GRADIENT, 1, "shift_gradient"},
    {EP_ROLE_LENGTHS, 1, "lengths"},
    {EP_ROLE_LOG_SUM, 1, "log_sum"},
    {EP_ROLE_SRC_0, EP_MAX_OPERANDS, "src_"},
    {EP_ROLE_DST_0, EP_MAX_OPERANDS, "dst_"},
    {EP_ROLE_RECURRENT_WEIGHT, 1, "recurrent_weight"},
    {EP_ROLE_RECURRENT_BIAS, 1, "recurrent_bias"},
    {EP_ROLE_PEEPHOLE, 1, "peephole"},
    {EP_ROLE_HIDDEN, 1, "hidden"},
    {EP_ROLE_CELL, 1, "cell"},
    {EP_ROLE_DST_HIDDEN, 1, "dst_hidden"},
    {EP_ROLE_DST_CELL, 1, "dst_cell"},
    {EP_ROLE_DST_R, 1, "dst_r"},
    {EP_ROLE_DST_VECTORS, 1, "dst_vectors"},
    {EP_ROLE_DST_VECTORS_H, 1, "dst_vectors_h"},
    {EP_ROLE_DST_PIVOTS, 1, "dst_pivots"},
    {EP_ROLE_DST_LOG, 1, "dst_log"},
};

}  // namespace

std::span<const KindRow> kinds() { return kind_rows; }
std::span<const ScalarRow> unary_rows() { return unaries; }
std::span<const ScalarRow> binary_rows() { return binaries; }
std::span<const ScalarRow> ternary_rows() { return ternaries; }
std::span<const ReduceRow> reduce_rows() { return reductions; }

const KindRow* kind_row(int32_t id) { return find_id(kind_rows, id); }
const KindRow* kind_row(std::string_view name) { return find_name(kinds(), name); }
const ScalarRow* unary_row(int32_t id) { return find_id(unaries, id); }
const ScalarRow* binary_row(int32_t id) { return find_id(binaries, id); }
const ScalarRow* ternary_row(int32_t id) { return find_id(ternaries, id); }
const ReduceRow* reduce_row(int32_t id) { return find_id(reductions, id); }
const ReduceRow* reduce_row(std::string_view name) { return find_name(reduce_rows(), name); }

const ScalarRow* scalar_row(int32_t arity, std::string_view name) {
  if (arity == 1) return find_name(unary_rows(), name);
  return find_name(arity == 2 ? binary_rows() : ternary_rows(), name);
}

std::string kind_name(int32_t id) {
  const KindRow* row = kind_row(id);
  return row != nullptr ? std::string(row->name) : fmt::format("kind {}", id);
}

bool in_domain(Domain domain, DType dtype) {
  // This dtype and the later ones are only stored: fill writes them, copy casts them.
  if (static_cast<int32_t>(dtype) >= EP_DTYPE_f8e4m3fnuz) return false;
  const DTypeClass type_class = dtype_info(dtype).type_class;
  const bool is_float = type_class == DTypeClass::FLOAT;
  const bool is_int = type_class == DTypeClass::INT || type_class == DTypeClass::UINT;
  switch (domain) {
    case Domain::FLOAT: return is_float;
    case Domain::SIGNED: return is_float || type_class == DTypeClass::INT;
    case Domain::NUMERIC: return is_float || is_int;
    case Domain::INTEGER: return is_int;
    case Domain::BITS: return is_int || type_class == DTypeClass::BOOL;
    case Domain::BOOL: return type_class == DTypeClass::BOOL;
    case Domain::ANY:
    case Domain::COND: return type_class != DTypeClass::NONE;
  }
  return false;
}

std::string_view domain_text(Domain domain) {
  switch (domain) {
    case Domain::FLOAT: return "floating-point types";
    case Domain::SIGNED: return "signed integers and floating-point types";
    case Domain::NUMERIC: return "integers and floating-point types";
    case Domain::INTEGER: return "integers";
    case Domain::BITS: return "integers and bool";
    case Domain::BOOL: return "bool";
    case Domain::ANY:
    case Domain::COND: return "all types";
  }
  return "nothing";
}

std::string role_name(int32_t role) {
  for (const RoleRow& row : roles) {
    if (role < row.role || role >= row.role + row.count) continue;
    std::string name(row.name);
    return row.count > 1 ? fmt::format("{}{}", name, role - row.role) : name;
  }
  return {};
}

std::optional<int32_t> role_from_name(std::string_view name) {
  for (const RoleRow& row : roles) {
    for (int32_t i = 0; i < row.count; ++i) {
      if (role_name(row.role + i) == name) return row.role + i;
    }
  }
  return std::nullopt;
}

bool is_output(int32_t kind, int32_t role) {
  const bool measures = kind == EP_PRIMITIVE_layer_norm || kind == EP_PRIMITIVE_batch_norm_training ||
                        kind == EP_PRIMITIVE_rms_norm || kind == EP_PRIMITIVE_group_norm;
  if (measures && (role == EP_ROLE_MEAN || role == EP_ROLE_INV_STD)) return true;
  if (role == EP_ROLE_DST_COUNT || role == EP_ROLE_DST_INVERSE || role == EP_ROLE_DST_COUNTS) return true;
  if (role == EP_ROLE_DST_HIDDEN || role == EP_ROLE_DST_CELL) return true;
  if (role >= EP_ROLE_DST_R && role <= EP_ROLE_DST_LOG) return true;
  return role == EP_ROLE_DST || role == EP_ROLE_DST_INDICES || role == EP_ROLE_SCALE_GRADIENT ||
         role == EP_ROLE_SHIFT_GRADIENT || role == EP_ROLE_LOG_SUM ||
         (role >= EP_ROLE_DST_0 && role < EP_ROLE_DST_0 + EP_MAX_OPERANDS);
}

}  // namespace tenon::table
