// MapKernel: one row of scalar_ops.def over contiguous elements of one compute type, and the tables of them.
//
// A kernel knows nothing of strides, narrow floats, broadcasting or threads: map.h brings every operand into this form,
// block by block. So there is one kernel per row, compute type and dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// What a kernel gets besides its operands: the parameters a and b in the compute type, and where it notes the first
// fault it meets.
struct MapContext {
  alignas(8) unsigned char a[8] = {};
  alignas(8) unsigned char b[8] = {};
  int32_t fault_code = 0;
  bool stream = false;  // write past the cache, where the kernel can
  int64_t fault_value = 0;
};

// dst[i] = row(src[0][i], src[1][i], ...) for i < n; n > 0. `dst` may be src[0].
using MapFunction = void (*)(void* dst, const void* const* src, int64_t n, MapContext& context);

struct MapKernel {
  MapFunction function = nullptr;  // NULL: the row is not defined on this type
  int32_t dst_dtype = 0;           // of what it writes: the compute type, or bool
  int32_t picoseconds = 0;         // rough cost per element, for the choice of threads
  const char* implementation = nullptr;
  bool streams = false;  // obeys MapContext::stream
};

// The kernel of row `op` on elements of compute type `dtype`: bool, integers, f32, f64.
MapKernel unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

// The vector kernels over f32, and the plain ones over the other types: what the three functions above choose from.
MapKernel f32_unary_kernel(SimdLevel level, int32_t op);
MapKernel f32_binary_kernel(SimdLevel level, int32_t op);
MapKernel f32_ternary_kernel(SimdLevel level, int32_t op);
MapKernel scalar_unary_kernel(int32_t op, int32_t dtype);
MapKernel scalar_binary_kernel(int32_t op, int32_t dtype);
MapKernel scalar_ternary_kernel(int32_t op, int32_t dtype);

}  // namespace tenon::provider::cpu
