// float16 and bfloat16: elements of f16 and bf16 on the host. They only store: arithmetic converts them to float, and
// the result is rounded once, to nearest even.
#pragma once

#include <cstdint>

#include "primitives/dtype/convert.h"

namespace tenon {

struct float16 {
  float16() = default;
  float16(float value) : bits(f32_to_f16(value)) {}
  operator float() const { return f16_to_f32(bits); }
  uint16_t bits = 0;
};

struct bfloat16 {
  bfloat16() = default;
  bfloat16(float value) : bits(f32_to_bf16(value)) {}
  operator float() const { return bf16_to_f32(bits); }
  uint16_t bits = 0;
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

}  // namespace tenon
