// How far two tensors that should be equal are apart.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace tenon::cli {

// The relative error that `dtype` is allowed after a model's worth of roundings: about 2^10 of its units for f32 and
// f64, a few for narrower types; 0 for integers and bools.
double default_tolerance(DType dtype);

// Of b against a. NaN equals NaN and an infinity equals itself; anything else beside one is an infinite error. The
// error of an element is taken relative to the greater of its own size and the root mean square of all finite elements
// of a, so that elements that cancelled to almost nothing do not count for more than the rest.
struct Divergence {
  std::string types;  // "f32[2, 3] against f32[3, 2]" where dtype or shape differ; nothing else is known then
  int64_t elements = 0;
  int64_t differing = 0;  // not the same bits
  int64_t beyond = 0;     // of an error above the tolerance
  double max_absolute = 0, max_relative = 0;
  uint64_t max_ulp = 0;  // units in the last place of the dtype; floats without NaN and infinities
  int64_t worst = -1;    // row-major position of the greatest relative error; -1: all equal
  double worst_a = 0, worst_b = 0;

  bool diverges() const { return beyond > 0 || !types.empty(); }
};
Divergence measure_divergence(const Tensor& a, const Tensor& b, double tolerance);

// "[1, 20]", of the element at row-major position `at`.
std::string element_place(int64_t at, const Dims& dims);

}  // namespace tenon::cli
