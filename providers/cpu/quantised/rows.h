// Kernels over rows of quantised bytes, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Quantisation of one row. `zero` is an 8-bit integer.
struct Number {
  float scale;
  float zero;
  bool is_signed;
};

struct ByteRows {
  // out = (in - zero) * scale
  void (*read)(float* out, const uint8_t* in, int64_t n, const Number& number);
  // out = round(in / scale) + zero, saturated; NaN becomes the least number
  void (*write)(uint8_t* out, const float* in, int64_t n, const Number& number);
  // The sum, or the product, of two rows, element by element.
  void (*add)(uint8_t* out, const uint8_t* a, const uint8_t* b, int64_t n, const Number (&numbers)[3]);
  void (*mul)(uint8_t* out, const uint8_t* a, const uint8_t* b, int64_t n, const Number (&numbers)[3]);
};
const ByteRows& byte_rows(SimdLevel level);

}  // namespace tenon::provider::cpu
