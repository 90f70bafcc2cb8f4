// Boxes: one thread's share of a launch of Map whose innermost axis is short.
//
// A box is as many elements as fit in a block. They follow each other in row-major order: whole inner axes, and a part
// of one more axis, the outer axis of the box. The kernel runs once per box, not once per row; operands that are not
// contiguous within a box are copied to and from blocks. Three kinds of work are saved:
// - Axes along which no source varies have length 1 for the kernel. Its results are repeated along them.
// - Sources that are the same in all boxes are copied once; if all are, the kernel runs once.
// - If all sources have the same small gaps between their rows, the kernel computes the gaps too, in place of a copy.
#pragma once

#include <cstdint>

#include "providers/cpu/elementwise/map.h"
#include "providers/cpu/elementwise/short_rows.h"
#include "providers/cpu/movement/strided_copy.h"

namespace tenon::provider::cpu {

// Copies boxes between two sets of strides.
class BoxCopy {
 public:
  BoxCopy() = default;
  // The axes of a box, `rank` > 0, and the strides of both sides. Boxes may be shorter along the first axis.
  BoxCopy(int32_t size, int32_t rank, const int64_t* dims, const int64_t* dst_strides, const int64_t* src_strides,
          SimdLevel level);

  // True if both sides are contiguous.
  bool dense() const { return copy_.rank == 1 && copy_.dst_strides[0] == 1 && copy_.src_strides[0] == 1; }
  // The distance of the rows of the source if the box consists of rows; else 0.
  int64_t row_stride() const { return copy_.rank == 2 && copy_.src_strides[1] == 1 ? copy_.src_strides[0] : 0; }
  // Copies a box of `n` > 0 steps along the first axis.
  void run(char* dst, const char* src, int64_t n) const;

 private:
  StridedCopy copy_;      // its axes are merged
  int64_t per_step_ = 1;  // the length of copy_'s first axis per step along the first axis of the box
  SimdLevel level_{};
  ShortRows rows_;
  ConvertFunction elements_ = nullptr;
};

class Boxes {
 public:
  // True if boxes are faster than one kernel call per row.
  static bool suit(const MapPlan& plan, const MapShape& shape);

  // `stream` copies f32 past the cache; NULL: results are written through the cache.
  Boxes(const MapPlan& plan, const MapShape& shape, const ep_launch& launch, const MapContext& context, SimdLevel level,
        StreamCopy stream);

  int64_t units() const;  // the number of boxes of the whole launch
  void run(int64_t begin, int64_t end);
  const MapContext& context() const { return context_; }

 private:
  static constexpr int64_t block_bytes = 4096;

  void compute_gaps(int64_t length);
  void fill_scalar(int32_t i, const ep_scalar& scalar);
  void run_box(const int64_t* offsets, int64_t n);
  void compute(const int64_t* offsets, int64_t n, char* to);
  const void* source(int32_t i, const int64_t* offsets, int64_t n);
  int64_t count(int64_t n) const { return (one_step_ ? 1 : n) * computed_ - gap_; }

  const MapPlan& plan_;
  const MapShape& shape_;
  MapContext context_;
  StreamCopy stream_;
  int64_t most_ = block_bytes;  // elements of a block
  int32_t axis_ = 0;            // the outer axis: a box is a part of it, and has all axes after it whole
  int64_t steps_ = 1;           // steps of a whole box along it
  int64_t tail_ = 1;            // elements of a step
  int64_t computed_ = 1;        // results of a step
  int64_t gap_ = 0;             // elements between rows that are computed too
  bool one_step_ = false;       // no source varies along the outer axis
  bool one_result_ = false;     // all boxes have the same results
  bool finished_ = false;       // these results are in blocks_[0]
  bool dst_dense_ = false;      // boxes of the destination are contiguous
  char* base_[map_max_operands] = {};
  BoxCopy gathers_[map_max_operands];         // copy the sources to blocks
  BoxCopy repeats_;                           // copies the results to a contiguous block
  BoxCopy scatters_;                          // copies the results to the destination
  bool constant_[map_max_operands] = {};      // True if all boxes read the same elements of the source
  const void* ready_[map_max_operands] = {};  // the elements of a constant source
  // Blocks that hold elements in the types of the operands, and in the types of the kernel. The first block of each
  // array holds results.
  alignas(64) char blocks_[map_max_operands][block_bytes];
  alignas(64) char converted_[map_max_operands][block_bytes];
};

}  // namespace tenon::provider::cpu
