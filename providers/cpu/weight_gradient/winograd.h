// Winograd's method for 3 x 3 taps of stride 1, with 16 multiplications instead of 36 (../convolution/winograd.h).
//
// The gradient of the weights is linear in each operand, so its transforms are the transposes of the forward ones:
// squares of 4 x 4 pixels of SRC and of 2 x 2 pixels of GRADIENT are transformed, then products are summed over all
// squares for each position, and the sums of 16 positions become 9 taps.
#pragma once

#include "providers/cpu/convolution/winograd_kernel.h"
#include "providers/cpu/weight_gradient/sizes.h"

namespace tenon::provider::cpu {

class WinogradWeightGradient {
 public:
  WinogradWeightGradient(const WeightSizes& sizes, SimdLevel level, int32_t threads);

  // True if Winograd's method is faster than the direct method.
  static bool pays(const WeightSizes& sizes);

  int64_t floats() const;  // size of `room`
  // Returns false if a result is infinite or NaN. All results must then be computed by the direct method, because an
  // infinite or NaN input affects its whole square.
  bool run(const WeightOperands& operands, float* room) const;

 private:
  int64_t left_position() const;
  int64_t right_position() const;
  int64_t unit_floats() const;
  void transform(const WeightOperands& operands, int64_t square, int64_t number, float* left, float* right) const;
  // Multiplies `count` transformed squares.
  void multiply(int64_t count, int64_t begin, int64_t end, const float* left, const float* right, bool adds,
                float* sums) const;

  WeightSizes sizes_;
  WinogradKernels kernels_;
  int32_t threads_;
  std::vector<float> zeros_;
  WeightPlaces places_;
  WeightUnits units_;
  int64_t down_, across_, squares_;
  int64_t left_row_, right_row_;  // elements between transformed squares
  int64_t chunk_, chunks_;        // squares that are transformed and multiplied before the next squares
};

}  // namespace tenon::provider::cpu
