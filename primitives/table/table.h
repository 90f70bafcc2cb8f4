// The rows of primitives.def and scalar_ops.def as C++ tables: names, ids, domains. All code that prints, checks,
// parses or iterates over kinds and scalar functions reads these tables; there is no second list.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

namespace tenon::table {

// The dtypes on which a scalar function is defined. The names are the words of scalar_ops.def.
enum class Domain : uint8_t { FLOAT, SIGNED, NUMERIC, INTEGER, BITS, BOOL, ANY, COND };
// The dtype of the result: the dtype of the last argument, or bool.
enum class ResultType : uint8_t { SAME, BOOL };
// DIVISOR: on integers the function reports a fault if the last argument is 0.
enum class Check : uint8_t { NONE, DIVISOR };

struct ScalarRow {
  std::string_view name;
  int32_t id;
  Domain domain;
  ResultType result;
  Check check;
  int32_t parameters;  // launch scalars its expression reads: 0, 1 (a) or 2 (a and b); unary rows only
};

struct ReduceRow {
  std::string_view name;
  int32_t id;
  Domain domain;
};

struct KindRow {
  std::string_view name;
  int32_t id;
  uint32_t attribute_size;  // bytes of its struct in ep_attributes
  int32_t alias;            // the operand that may be the same memory as DST: EP_ROLE_SRC, or 0 for none
};

std::span<const KindRow> kinds();
std::span<const ScalarRow> unary_rows();
std::span<const ScalarRow> binary_rows();
std::span<const ScalarRow> ternary_rows();
std::span<const ReduceRow> reduce_rows();

// The row with this id or name; null if there is none.
const KindRow* kind_row(int32_t id);
const KindRow* kind_row(std::string_view name);
const ScalarRow* unary_row(int32_t id);
const ScalarRow* binary_row(int32_t id);
const ScalarRow* ternary_row(int32_t id);
const ReduceRow* reduce_row(int32_t id);
// The row of a scalar function of arity 1, 2 or 3; null if there is none.
const ScalarRow* scalar_row(int32_t arity, std::string_view name);
const ReduceRow* reduce_row(std::string_view name);

// "matmul", or "kind 47" for an unknown id.
std::string kind_name(int32_t id);

// True if a function of `domain` is defined on `dtype` (for COND: the dtype of the chosen values; the condition is
// bool). False for the dtypes from f8e4m3fnuz on, which are only stored.
bool in_domain(Domain domain, DType dtype);
// "floating-point types": for messages.
std::string_view domain_text(Domain domain);
// The result's dtype of `row` for arguments of `dtype` (the dtype of the last argument).
inline DType result_dtype(const ScalarRow& row, DType dtype) {
  return row.result == ResultType::BOOL ? DType::boolean : dtype;
}

// "dst", "src_b", "epilogue_1", "src_3" (EP_ROLE_SRC_0 + 3); empty for an unknown role.
std::string role_name(int32_t role);
std::optional<int32_t> role_from_name(std::string_view name);
// True if primitives of `kind` write the operand `role`: every DST role, SCALE_GRADIENT, SHIFT_GRADIENT and LOG_SUM.
// Also true for MEAN and INV_STD of layer_norm, rms_norm, group_norm and batch_norm_training.
bool is_output(int32_t kind, int32_t role);

}  // namespace tenon::table
