// Ways to give offsets to intervals of time. Internal to core/plan.
//
// Offsets count through all blocks: block k is the bytes from k * stride on, and nothing lies across a border.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::plan {

struct Interval {
  uint64_t bytes = 0;  // > 0, at most the stride
  uint64_t alignment = 1;
  uint32_t first = 0;
  uint32_t last = 0;
};

// How many more looks at an interval or a list a way may take. A way that runs out gives up.
struct Budget {
  uint64_t left = 0;
  bool spend(uint64_t looks) {
    const bool enough = left >= looks;
    left -= enough ? looks : left;
    return enough;
  }
};

// Gives offsets in order of time: each interval gets the smallest free range that holds it. `stride` is a multiple of
// every alignment. O(n log n).
std::vector<uint64_t> place_in_time(std::span<const Interval> intervals, uint64_t stride);

// Gives offsets in the order `order`: each interval gets the lowest bytes that no interval placed before it has at the
// same time. None: the budget was used up.
std::optional<std::vector<uint64_t>> place_in_order(std::span<const Interval> intervals,
                                                    std::span<const uint32_t> order, uint64_t stride, Budget* budget);

// Gives each interval a block that holds no other at the same time; the largest come first, so that a block has the
// size of its first. The result is the number of the block, by interval.
std::vector<uint32_t> place_alone(std::span<const Interval> intervals);

}  // namespace tenon::plan
