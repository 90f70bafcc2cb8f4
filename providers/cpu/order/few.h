// Sorting of short lists: counts for each key how many keys precede it.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int64_t few_keys = 64;

// places[i] = the position of keys[i] in the sorted list; n <= few_keys. Equal keys keep their order.
using PlacesFunction = void (*)(const uint32_t* keys, int64_t n, uint32_t* places);
PlacesFunction places_function(SimdLevel level);

// Returns the position of the least of n > 0 keys; the first one if several are equal.
using LeastFunction = int64_t (*)(const uint32_t* keys, int64_t n);
LeastFunction least_function(SimdLevel level);

}  // namespace tenon::provider::cpu
