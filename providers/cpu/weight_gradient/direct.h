// The direct way: for each tap a sum over all pixels whose tap lies within SRC, read where they lie.
//
// SRC of few channels is copied into a frame of zeros along the last axis first; then the taps of a row follow each
// other in memory and are one tap of more channels.
#pragma once

#include "providers/cpu/weight_gradient/sizes.h"

namespace tenon::provider::cpu {

class DirectWeightGradient {
 public:
  DirectWeightGradient(const WeightSizes& sizes, SimdLevel level, int32_t threads);

  // True if SRC is read from a frame, so that its channels need not follow each other.
  bool framed() const { return framed_; }
  int64_t floats() const;  // of room
  void run(const WeightOperands& operands, float* room) const;

 private:
  int64_t frame_floats() const;
  WeightOperands fill_frame(const WeightOperands& operands, float* frame) const;
  // Appends the lines of `tap` among lines [first, last) of GRADIENT. Those that follow each other are one.
  void add_lines(const WeightOperands& operands, int64_t tap, int64_t first, int64_t last,
                 std::vector<OuterLine>* lines) const;

  WeightSizes sizes_;  // a tap of a frame has the channels of a row of taps
  SimdLevel level_;
  int32_t threads_;
  bool framed_;
  int64_t channels_;           // of SRC as it is given
  int64_t src_columns_;        // pixels of a row of SRC as it is given
  int64_t frame_columns_ = 0;  // pixels of a row of the frame
  int64_t frame_first_ = 0;    // which of them SRC begins with
  WeightPlaces places_;
  WeightUnits units_;
  int64_t chunk_, chunks_;  // lines of GRADIENT that all taps of all units read before the next ones
};

}  // namespace tenon::provider::cpu
