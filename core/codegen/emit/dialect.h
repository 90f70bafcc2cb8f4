// What the dialects of work-items (OpenCL C, GLSL, CUDA C) say differently. Internal to core/codegen/emit.
//
// A number of dtype $d is a scalar of type(d): f16 and bf16 are floats; in OpenCL C and GLSL small integers are int and
// uint, and bool is a uint, 0 or 1. ep_get_$d(b, i) loads element i from buffer b, ep_put_$d(b, i, x) stores it,
// ep_cast_$d_$e(x) converts. The functions of the prelude have the suffix _$d, but in CUDA C, whose prelude is C++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

namespace tenon::codegen {

struct DialectWords {
  int32_t dialect = 0;

  std::string_view function;  // in front of a function
  std::string_view shared;    // in front of an array that a group shares
  std::string_view barrier;   // a statement
  // Along a dim, of which {0} is the number and {1} the letter.
  std::string_view group, groups;
  std::string_view work_item;
  std::string_view parameters;   // in front of a member of the parameters
  std::string_view long_suffix;  // of an integer of 64 bits
  std::string_view unroll;       // in front of a loop whose steps are to be written out
};
// Errors: unsupported, for a dialect without work-items.
const DialectWords* words_of(int32_t dialect);

std::string_view type_of(const DialectWords& words, DType dtype);
std::string_view storage_of(const DialectWords& words, DType dtype);

// What stands in front of everything else. `index`: the type of sizes and indices.
std::string head_text(const DialectWords& words, std::string_view index);
// The prelude on numbers of one dtype. In CUDA C it is the same for all, and stands in the head.
std::string numbers_text(const DialectWords& words, DType dtype);
// What loads and stores of narrow floats call.
std::string narrow_text(const DialectWords& words);
// ep_get_$d and ep_put_$d.
std::string memory_text(const DialectWords& words, DType dtype, std::string_view index);
std::string cast_text(const DialectWords& words, DType from, DType to);

// An expression of scalar_ops.def, in a function on numbers of `dtype`: its body.
std::string body_text(const DialectWords& words, std::string_view expression, DType dtype);
std::string number_text(const DialectWords& words, DType dtype, double number);
std::string integer_text(const DialectWords& words, DType dtype, int64_t number);

}  // namespace tenon::codegen
