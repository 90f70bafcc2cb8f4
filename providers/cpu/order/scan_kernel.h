// The scan kernels over contiguous elements, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Combines the n elements of a line with `state`, in order. y[i] is the state after element i, or before it if
// exclusive. `y` may be `x`, or NULL. The elements of a vector are combined with each other before `state`, so a sum of
// floats with T == State may differ from a left-to-right sum in its last bits.
template <class T, class State>
using ScanLine = void (*)(const T* x, T* y, int64_t n, State* state, bool exclusive);
// Advances n lines by one element each: x[i] belongs to line i, which has a state of its own.
template <class T, class State>
using ScanLanes = void (*)(const T* x, T* y, int64_t n, State* states, bool exclusive);

// The greatest element, and the sum of exp(element - greatest).
struct ExponentialSum {
  double most;
  double sum;
};

// An element and its position. A negative position means that there is no element yet.
struct ValueAt {
  float value;
  int64_t position;
};
// Element i has position first + i * step. `y` and `places` may both be NULL.
using ScanPositions = void (*)(const float* x, float* y, int64_t* places, int64_t n, int64_t first, int64_t step,
                               ValueAt* state);

// Advances n lines by one element each, all at position `at`. The initial values are infinities.
using ScanPositionLanes = void (*)(const float* x, float* y, int64_t* places, int64_t n, int32_t at, float* values,
                                   int32_t* positions);

struct ScanKernels {
  ScanLine<float, double> sum_f32;
  ScanLine<double, double> sum_f64;
  ScanLine<uint64_t, uint64_t> sum_u64;
  // Uses double, in which a product of f32 values of one vector neither overflows nor underflows.
  ScanLine<float, double> product_f32;
  ScanLine<float, ExponentialSum> log_sum_exp_f32;
  ScanLanes<float, double> sum_lanes_f32;
  ScanLanes<float, double> product_lanes_f32;
  ScanPositions greatest_f32;
  ScanPositions least_f32;
  ScanPositionLanes greatest_lanes_f32;
  ScanPositionLanes least_lanes_f32;
};

const ScanKernels& scan_kernels(SimdLevel level);

// value_of returns the logarithm of `state`; the other function returns `state` with one more element.
double value_of(const ExponentialSum& state);
ExponentialSum joined(ExponentialSum a, ExponentialSum b);

}  // namespace tenon::provider::cpu
