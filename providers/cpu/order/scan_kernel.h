// The kernels of scan over elements that lie side by side, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Combines n elements of a line with `state`, one after the other. y[i] is the state after element i, or, if exclusive,
// before it. `y` may be `x`, or NULL. The elements of one vector are combined with each other before they are with
// `state`, so a sum of floats of T == State may differ from one from left to right in its last bits.
template <class T, class State>
using ScanLine = void (*)(const T* x, T* y, int64_t n, State* state, bool exclusive);
// The same of n lines at once, each of which has one element in `x`, and a state of its own.
template <class T, class State>
using ScanLanes = void (*)(const T* x, T* y, int64_t n, State* states, bool exclusive);

// The greatest element and the sum of exp of the distances to it.
struct ExponentialSum {
  double most;
  double sum;
};

// An element, and where it stands. A position below 0: no element yet.
struct ValueAt {
  float value;
  int64_t position;
};
// Element i stands at first + i * step. `y` and `places` may both be NULL.
using ScanPositions = void (*)(const float* x, float* y, int64_t* places, int64_t n, int64_t first, int64_t step,
                               ValueAt* state);

// The same of n lines at once, whose elements in `x` all stand at `at`. At first values are infinities.
using ScanPositionLanes = void (*)(const float* x, float* y, int64_t* places, int64_t n, int32_t at, float* values,
                                   int32_t* positions);

struct ScanKernels {
  ScanLine<float, double> sum_f32;
  ScanLine<double, double> sum_f64;
  ScanLine<uint64_t, uint64_t> sum_u64;
  // A product of floats in double neither overflows nor underflows within a vector.
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

// The logarithm of `state`, and `state` with one more element.
double value_of(const ExponentialSum& state);
ExponentialSum joined(ExponentialSum a, ExponentialSum b);

}  // namespace tenon::provider::cpu
