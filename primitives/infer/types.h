// Dtypes of results, with PyTorch's promotion rules.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/dtype/dtype.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// The dtype to which arguments are cast for the computation, and the dtype of the result.
struct ScalarTypes {
  DType compute = DType::none;
  DType result = DType::none;
};

// EP_UNARY_*, EP_BINARY_*, EP_TERNARY_* on arguments of these types. If the row accepts only floats, bool and integers
// are computed in f32. If it does not accept bool, bool is computed in i64.
Result<ScalarTypes> unary(std::string_view op, int32_t scalar_op, DType x);
Result<ScalarTypes> binary(std::string_view op, int32_t scalar_op, DType x, DType y);
// `where`: x is the condition (bool); y and z are promoted.
Result<ScalarTypes> ternary(std::string_view op, int32_t scalar_op, DType x, DType y, DType z);

// EP_REDUCE_* over elements of `x`: sum and prod of bool and integers are i64; max and min keep the dtype (bool is
// computed in u8); mean, l2 norm and log_sum need floats; any and all treat every dtype as bool.
Result<ScalarTypes> reduce(std::string_view op, int32_t reduce_op, DType x);

// The dtype for computing with a tensor of dtype `tensor` and a plain number of class `number` (BOOL, INT or FLOAT):
// the tensor's dtype unless the number is of a higher class. A float with an integer tensor gives f32, an integer with
// a bool tensor gives i64.
DType promote_number(DType tensor, DTypeClass number);

}  // namespace tenon::infer
