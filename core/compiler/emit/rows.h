// The rows of scalar_ops.def as texts. Internal to core/compiler/emit.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::compiler {

// "ep_mul(x, x)"; empty for an id that no row has.
std::string_view unary_text(int32_t op);
std::string_view binary_text(int32_t op);
std::string_view ternary_text(int32_t op);

struct ReduceText {
  std::string_view init, map, combine, finish;
};
ReduceText reduce_text(int32_t op);

}  // namespace tenon::compiler
