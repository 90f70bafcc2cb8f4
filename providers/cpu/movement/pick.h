// Selects the updates of a scatter that write to a range of positions.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int64_t longest_span = 256;  // updates per call
constexpr int64_t most_lanes = 16;     // elements that a vector store may write beyond the last selected update

// The updates of a span whose positions are within [low, high), in order.
struct Picked {
  int64_t numbers[longest_span + most_lanes];
  int64_t positions[longest_span + most_lanes];
  int64_t count;
  bool is_outside;  // an index is out of range; the lists are then undefined
};

// Negative indices count from the end, `length`. n is at most longest_span.
template <class Index>
using Pick = void (*)(const Index* indices, int64_t n, int64_t length, int64_t low, int64_t high, Picked* out);

template <class Index>
Pick<Index> pick(SimdLevel level);
template <>
Pick<int64_t> pick(SimdLevel level);
template <>
Pick<int32_t> pick(SimdLevel level);

}  // namespace tenon::provider::cpu
