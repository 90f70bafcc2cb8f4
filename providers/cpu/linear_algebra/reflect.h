// QR of a small matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_reflected = 128;  // the most rows and columns of a small matrix

// `a` holds `columns` contiguous columns of `rows` elements. Its upper triangle becomes R; the rest is unchanged. `q`
// gets the first q_columns columns of Q, min(rows, columns) <= q_columns <= rows. Signs as in LAPACK's geqrf.
struct SmallQr {
  float* a;
  float* q;
  int rows, columns, q_columns;
};

using QrKernel = void (*)(const SmallQr& matrix);

QrKernel qr_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
