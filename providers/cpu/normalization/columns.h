// softmax along an axis whose memory neighbours belong to other rows, and softmax of rows of doubles; per dispatch
// target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The most columns per call.
inline constexpr int64_t softmax_columns = 64;

// dst = softmax (or log_softmax) of each of `n` columns. The `rows` elements of a column are src_stride and dst_stride
// apart. `buffer` holds rows * softmax_columns elements. `dst` may be `src`.
template <class T>
using SoftmaxColumns = void (*)(T* dst, int64_t dst_stride, const T* src, int64_t src_stride, T* buffer, int64_t rows,
                                int64_t n, bool log);

struct SoftmaxKernels {
  SoftmaxColumns<float> columns;
  SoftmaxColumns<double> wide_columns;                                    // NULL if the level has no vectors of double
  void (*wide_row)(double* dst, const double* src, int64_t n, bool log);  // `dst` may be `src`
};

SoftmaxKernels softmax_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
