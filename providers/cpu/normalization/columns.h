// softmax along an axis whose neighbours in memory belong to other rows: f32, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The most columns that one call takes.
inline constexpr int64_t softmax_columns = 64;

// dst = softmax of each of `n` columns (or its logarithm): the `rows` elements of a column are src_stride and
// dst_stride apart.
// `buffer` holds rows * softmax_columns floats. `dst` may be `src`.
using SoftmaxColumns = void (*)(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, float* buffer,
                                int64_t rows, int64_t n, bool log);

SoftmaxColumns softmax_columns_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
