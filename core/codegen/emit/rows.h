// The rows of scalar_ops.def as texts. Internal to core/codegen/emit.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/dtype/dtype.h"

namespace tenon::codegen {

// The text of a row, such as "ep_mul(x, x)"; empty for an unknown id.
std::string_view unary_text(int32_t op);
std::string_view binary_text(int32_t op);
std::string_view ternary_text(int32_t op);

struct ReduceText {
  std::string_view init, map, combine, finish;
};
ReduceText reduce_text(int32_t op);

// The dtype in which kernels compute numbers of `dtype`: f16 and bf16 are computed as f32.
inline DType computed(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

}  // namespace tenon::codegen
