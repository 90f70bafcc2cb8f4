// The direct method: for each tap, a sum over all pixels for which the tap lies within SRC, without a copy.
//
// If SRC has few channels, it is first copied into a frame that is padded with zeros along the last axis. The taps of a
// kernel row are then contiguous in memory and count as one tap with more channels.
#pragma once

#include "providers/cpu/weight_gradient/sizes.h"

namespace tenon::provider::cpu {

class DirectWeightGradient {
 public:
  DirectWeightGradient(const WeightSizes& sizes, SimdLevel level, int32_t threads);

  // True if SRC is read from a frame, so that its channels need not be contiguous.
  bool framed() const { return framed_; }
  int64_t floats() const;  // size of `room`
  void run(const WeightOperands& operands, float* room) const;

 private:
  int64_t frame_floats() const;
  WeightOperands fill_frame(const WeightOperands& operands, float* frame) const;
  // Appends the lines of `tap` among lines [first, last) of GRADIENT. Adjacent lines are merged.
  void add_lines(const WeightOperands& operands, int64_t tap, int64_t first, int64_t last,
                 std::vector<OuterLine>* lines) const;

  WeightSizes sizes_;  // in a frame, a tap has the channels of a whole kernel row
  SimdLevel level_;
  int32_t threads_;
  bool framed_;
  int64_t channels_;           // channels of the original SRC
  int64_t src_columns_;        // pixels per row of the original SRC
  int64_t frame_columns_ = 0;  // pixels per row of the frame
  int64_t frame_first_ = 0;    // index of the first pixel of SRC in the frame
  WeightPlaces places_;
  WeightUnits units_;
  int64_t chunk_, chunks_;  // lines of GRADIENT that all taps of all units process before the next lines
};

}  // namespace tenon::provider::cpu
