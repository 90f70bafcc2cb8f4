// Measures the difference of two tensors that should be equal.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"
#include "primitives/accuracy/accuracy.h"

namespace tenon::cli {

// The relative error that rounding may cause over a whole model if its nodes keep `tier`. On tier full: about 2^10
// units in the last place for f32 and f64, a few for narrower types. On tier portable: ten times as much for f32 and
// f64. On tier relaxed: 500 times as much, and at least the error of bf16, in which products may be computed. 0 for
// integers and bools.
double default_tolerance(DType dtype, Tier tier);

// The divergence of b from a. NaN equals NaN, and an infinity equals itself; compared with any other value, each is an
// infinite error. An element's error is relative to its own magnitude or to the root mean square of all finite elements
// of a, whichever is greater. So elements that are almost 0 through cancellation do not dominate.
struct Divergence {
  std::string types;  // "f32[2, 3] against f32[3, 2]" if dtype or shape differ; the other members are then unset
  int64_t elements = 0;
  int64_t differing = 0;  // elements with different bits
  int64_t beyond = 0;     // elements with an error above the tolerance
  double max_absolute = 0, max_relative = 0;
  uint64_t max_ulp = 0;  // units in the last place of the dtype; finite floats only
  int64_t worst = -1;    // row-major index of the greatest relative error; -1: all equal
  double worst_a = 0, worst_b = 0;

  bool diverges() const { return beyond > 0 || !types.empty(); }
};
Divergence measure_divergence(const Tensor& a, const Tensor& b, double tolerance);

// The index of the element at row-major position `at`, such as "[1, 20]".
std::string element_place(int64_t at, const Dims& dims);

}  // namespace tenon::cli
