// MapKernel: one scalar function of scalar_ops.def over contiguous elements of one compute type.
//
// A kernel does not deal with strides, narrow floats, broadcasting or threads: Map (map.h) copies every operand into
// contiguous blocks of the compute type. So each scalar function has one kernel per compute type and dispatch target.
// Some kernels can repeat a source of one element, and can then process several rows (MapContext).
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Further inputs of a kernel: the parameters a and b in the compute type, and a slot for the first fault.
struct MapContext {
  alignas(8) unsigned char a[8] = {};
  alignas(8) unsigned char b[8] = {};
  int32_t fault_code = 0;
  bool stream = false;  // true: the kernel should write past the cache if it can
  uint8_t single = 0;   // bit i: source i is one element for all n; no_single: only several rows
  static constexpr uint8_t no_single = 0x80;
  // If exactly one bit of `single` is set: the number of rows of n elements, and the bytes between rows of DST and of
  // each source.
  int64_t rows = 1;
  int64_t row_steps[4] = {};
  int64_t fault_value = 0;
};

// dst[i] = f(src[0][i], src[1][i], ...) for every i < n, where f is the scalar function. n > 0. `dst` may be src[0].
// Threads: any number at once, each with its own context.
using MapFunction = void (*)(void* dst, const void* const* src, int64_t n, MapContext& context);

struct MapKernel {
  MapFunction function = nullptr;  // NULL: the scalar function is not defined on this type
  int32_t dst_dtype = 0;           // type of the result: the compute type or bool
  int32_t picoseconds = 0;         // estimated cost per element, which decides the number of threads
  const char* implementation = nullptr;
  bool streams = false;             // true: the function obeys MapContext::stream
  bool takes_single = false;        // true: the function obeys MapContext::single
  bool takes_scalar = false;        // true: it obeys `single` for a source that is one f32 scalar
  bool takes_first_single = false;  // true: it obeys `single` for the first of three sources
  bool takes_two_scalars = false;   // true: it obeys `single` for the last two of three sources, if both are scalars
};

// The kernel of scalar function `op` on elements of compute type `dtype`: bool, an integer type, f32 or f64.
MapKernel unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

// The kernels of `op` that load and store f16 or bf16 and compute in f32. Without a function if `op` or the level has
// no such kernel.
MapKernel narrow_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel narrow_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel narrow_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

// The first three functions above choose from these: vector kernels for f32 and f64, and scalar kernels for the other
// types. At the level `baseline`, f64 uses scalar kernels too.
MapKernel vector_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel vector_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel vector_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_unary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_binary_kernel(SimdLevel level, int32_t op, int32_t dtype);
MapKernel scalar_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype);

}  // namespace tenon::provider::cpu
