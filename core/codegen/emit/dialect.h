// The differences between the dialects of work-items (OpenCL C, GLSL, CUDA C). Internal to core/codegen/emit.
//
// A number of dtype $d is a scalar of type(d): f16 and bf16 are floats; in OpenCL C and GLSL small integers are int and
// uint, and bool is a uint, 0 or 1. ep_get_$d(b, i) loads element i from buffer b, ep_put_$d(b, i, x) stores it,
// ep_cast_$d_$e(x) converts. The functions of the prelude have the suffix _$d, except in CUDA C, whose prelude is C++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

namespace tenon::codegen {

struct DialectWords {
  int32_t dialect = 0;

  std::string_view function;  // prefix of a function
  std::string_view shared;    // prefix of an array that a group shares
  std::string_view barrier;   // a statement
  // Formats for one dim: {0} is its number and {1} its letter.
  std::string_view group, groups;
  std::string_view work_item;
  std::string_view parameters;   // prefix of a parameter struct's member
  std::string_view long_suffix;  // suffix of a 64-bit integer literal
  std::string_view unroll;       // prefix of a loop that should be unrolled
};
// Returns null for a dialect without work-items.
const DialectWords* words_of(int32_t dialect);

std::string_view type_of(const DialectWords& words, DType dtype);
std::string_view storage_of(const DialectWords& words, DType dtype);

// The text at the very start. `index`: the type of sizes and indices.
std::string head_text(const DialectWords& words, std::string_view index);
// The prelude for numbers of one dtype. In CUDA C the prelude is the same for all dtypes and is part of the head.
std::string numbers_text(const DialectWords& words, DType dtype);
// The functions that loads and stores of narrow floats call.
std::string narrow_text(const DialectWords& words);
// The functions ep_get_$d and ep_put_$d.
std::string memory_text(const DialectWords& words, DType dtype, std::string_view index);
std::string cast_text(const DialectWords& words, DType from, DType to);

// An expression of scalar_ops.def as the body of a function on numbers of `dtype`.
std::string body_text(const DialectWords& words, std::string_view expression, DType dtype);
std::string number_text(const DialectWords& words, DType dtype, double number);
std::string integer_text(const DialectWords& words, DType dtype, int64_t number);

}  // namespace tenon::codegen
