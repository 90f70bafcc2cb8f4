// Algorithms that give offsets to intervals of time. Internal to core/plan.
//
// Offsets count through all blocks: block k holds the bytes from k * stride on, and no interval crosses a border.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::plan {

struct Interval {
  uint64_t bytes = 0;  // above 0, at most the stride
  uint64_t alignment = 1;
  uint32_t first = 0;
  uint32_t last = 0;
};

// The number of comparisons that an algorithm may still make. An algorithm that runs out gives up.
struct Budget {
  uint64_t left = 0;
  bool spend(uint64_t looks) {
    const bool enough = left >= looks;
    left -= enough ? looks : left;
    return enough;
  }
};

// Gives offsets in order of time: each interval gets the smallest free range that fits. `stride` is a multiple of every
// alignment. O(n log n).
std::vector<uint64_t> place_in_time(std::span<const Interval> intervals, uint64_t stride);

// Gives offsets in the order `order`: each interval gets the lowest bytes that no earlier placed interval uses at the
// same time. Nothing if the budget ran out.
std::optional<std::vector<uint64_t>> place_in_order(std::span<const Interval> intervals,
                                                    std::span<const uint32_t> order, uint64_t stride, Budget* budget);

// Gives each interval a block that holds no other interval at the same time. The largest come first, so a block has the
// size of its first interval. Returns the block number of each interval.
std::vector<uint32_t> place_alone(std::span<const Interval> intervals);

}  // namespace tenon::plan
