// Short lists: the place of each key among all is counted, so there is nothing to guess and nothing to move.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int64_t few_keys = 64;

// places[i] = where keys[i] stands among the n keys, n <= few_keys, once they are sorted; equal keys keep their order.
using PlacesFunction = void (*)(const uint32_t* keys, int64_t n, uint32_t* places);
PlacesFunction places_function(SimdLevel level);

// The place of the least of n > 0 keys, of equal ones the first.
using LeastFunction = int64_t (*)(const uint32_t* keys, int64_t n);
LeastFunction least_function(SimdLevel level);

}  // namespace tenon::provider::cpu
