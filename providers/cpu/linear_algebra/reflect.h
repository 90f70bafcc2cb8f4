// QR of a small matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_reflected = 128;  // the most rows and columns of a small matrix

// `a`, `columns` columns of `rows` elements one after the other, becomes R in its upper triangle; below it stays as it
// was. `q` gets the first q_columns columns of Q, which are at least min(rows, columns) and at most `rows`. Signs are
// those of LAPACK's geqrf.
struct SmallQr {
  float* a;
  float* q;
  int rows, columns, q_columns;
};

using QrKernel = void (*)(const SmallQr& matrix);

QrKernel qr_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
