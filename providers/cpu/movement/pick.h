// Which of the updates of a scatter go to some of its places.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int64_t longest_span = 256;  // updates that are looked at together
constexpr int64_t most_lanes = 16;     // that a vector may write beyond the last one picked

// Those of a span whose positions are within [low, high), in their order.
struct Picked {
  int64_t numbers[longest_span + most_lanes];
  int64_t positions[longest_span + most_lanes];
  int64_t count;
  bool is_outside;  // an index is out of range; then the lists say nothing
};

// Indices below 0 count from `length`, the end. n is at most longest_span.
template <class Index>
using Pick = void (*)(const Index* indices, int64_t n, int64_t length, int64_t low, int64_t high, Picked* out);

template <class Index>
Pick<Index> pick(SimdLevel level);
template <>
Pick<int64_t> pick(SimdLevel level);
template <>
Pick<int32_t> pick(SimdLevel level);

}  // namespace tenon::provider::cpu
