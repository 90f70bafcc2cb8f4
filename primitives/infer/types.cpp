#include "primitives/infer/types.h"

#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

// The dtype in which a row of `domain` is computed for arguments of `type`; none if there is none.
DType fitting(table::Domain domain, DType type) {
  if (table::in_domain(domain, type)) return type;
  const bool integral = !is_floating(type);
  switch (domain) {
    case table::Domain::FLOAT: return integral ? DType::f32 : DType::none;
    case table::Domain::SIGNED:
    case table::Domain::NUMERIC:
    case table::Domain::INTEGER: return type == DType::boolean ? DType::i64 : DType::none;
    case table::Domain::BOOL: return DType::boolean;
    default: return DType::none;
  }
}

Result<ScalarTypes> scalar_types(std::string_view op, const table::ScalarRow* row, DType type) {
  if (row == nullptr) return Status(Subject{op}, Code::invalid_argument, "the scalar function is unknown.");
  const DType compute = fitting(row->domain, type);
  if (compute == DType::none) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("is not defined on {} ({} takes {}).", dtype_name(type), row->name,
                              table::domain_text(row->domain)));
  }
  return ScalarTypes{compute, row->result == table::ResultType::BOOL ? DType::boolean : compute};
}

}  // namespace

Result<ScalarTypes> unary(std::string_view op, int32_t scalar_op, DType x) {
  return scalar_types(op, table::unary_row(scalar_op), x);
}

Result<ScalarTypes> binary(std::string_view op, int32_t scalar_op, DType x, DType y) {
  return scalar_types(op, table::binary_row(scalar_op), promote(x, y));
}

Result<ScalarTypes> ternary(std::string_view op, int32_t scalar_op, DType x, DType y, DType z) {
  const table::ScalarRow* row = table::ternary_row(scalar_op);
  if (row == nullptr || row->domain != table::Domain::COND) {
    return scalar_types(op, row, promote(promote(x, y), z));
  }
  if (x != DType::boolean) {
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("the condition must be bool, not {}.", dtype_name(x)));
  }
  const DType type = promote(y, z);
  return ScalarTypes{type, type};
}

Result<ScalarTypes> reduce(std::string_view op, int32_t reduce_op, DType x) {
  const table::ReduceRow* row = table::reduce_row(reduce_op);
  if (row == nullptr) return Status(Subject{op}, Code::invalid_argument, "the reduction is unknown.");
  if (row->domain == table::Domain::BOOL) return ScalarTypes{DType::boolean, DType::boolean};
  const bool widens = reduce_op == EP_REDUCE_sum || reduce_op == EP_REDUCE_prod || reduce_op == EP_REDUCE_l1_norm ||
                      reduce_op == EP_REDUCE_sum_square;
  if (!is_floating(x)) {
    if (row->domain == table::Domain::FLOAT) {
      return Status(Subject{op}, Code::invalid_argument,
                    fmt::format("needs a floating-point tensor, but got {}.", dtype_name(x)));
    }
    if (widens) return ScalarTypes{DType::i64, DType::i64};
    return ScalarTypes{x == DType::boolean ? DType::u8 : x, x};
  }
  return ScalarTypes{x, x};
}

DType promote_number(DType tensor, DTypeClass number) {
  const DTypeClass have = dtype_info(tensor).type_class;
  if (number == DTypeClass::FLOAT) return have == DTypeClass::FLOAT ? tensor : DType::f32;
  if (number == DTypeClass::BOOL) return tensor;
  return have == DTypeClass::BOOL ? DType::i64 : tensor;
}

}  // namespace tenon::infer
