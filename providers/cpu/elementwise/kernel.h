// MapKernel: one scalar function of scalar_ops.def over contiguous elements of one compute type.
//
// A kernel knows nothing of strides, narrow floats, broadcasting or threads: Map (map.h) brings every operand into
// contiguous blocks of the compute type. So each scalar function has one kernel per compute type and dispatch target.
// Some repeat a source of one element themselves, and go from row to row then (MapContext).
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// What a kernel gets besides its operands: the parameters a and b in the compute type, and a place for the first fault.
struct MapContext {
  alignas(8) unsigned char a[8] = {};
  alignas(8) unsigned char b[8] = {};
  int32_t fault_code = 0;
  bool stream = false;  // the kernel should write past the cache if it can
  uint8_t single = 0;  // bit i: source i is one element, which stands for all n; no_single: none is, but there are rows
  static constexpr uint8_t no_single = 0x80;
  // Where one bit of `single` alone is set: so many rows of n elements, and the bytes from a row of DST and of each
  // source to the next.
  int64_t rows = 1;
  int64_t row_steps[4] = {};
  int64_t fault_value = 0;
};

// dst[i] = f(src[0][i], src[1][i], ...) for every i < n, where f is the scalar function. n > 0. `dst` may be src[0].
// Threads: any number at once, each with its own context.
using MapFunction = void (*)(void* dst, const void* const* src, int64_t n, MapContext& context);

struct MapKernel {
  MapFunction function = nullptr;  // NULL: the scalar function is not defined on this type
  int32_t dst_dtype = 0;           // type of the result: the compute type, or bool
  int32_t picoseconds = 0;         // rough cost per element, from which the number of threads follows
  const char* implementation = nullptr;
  bool streams = false;             // the function obeys MapContext::stream
  bool takes_single = false;        // the function obeys MapContext::single
  bool takes_scalar = false;        // it obeys it where that source is a scalar, as one f32
  bool takes_first_single = false;  // it obeys it where the first of three sources is that one
  bool takes_two_scalars = false;   // it obeys it where the second and the third of three are scalars
};

// The kernel of scalar function `op` on elements of compute type `dtype`: bool, an integer type, f32 or f64.
MapKernel unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

// The kernels of `op` from and to storage of f16 or bf16, which compute in f32. No function: not `op`, or not this
// level.
MapKernel narrow_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel narrow_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);

// The first three functions above choose from these: vector kernels over f32 and f64, and scalar kernels over the other
// types, and over f64 at the level `baseline`, where the vector kernels have no function.
MapKernel vector_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel vector_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel vector_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

}  // namespace tenon::provider::cpu
