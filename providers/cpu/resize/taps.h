// The elements that each index of DST reads along one axis, by the rules above ep_resize_attributes.
#pragma once

#include <cstdint>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// Index i reads elements places[i * count + k] with weights[i * count + k], k < count. `outside` marks indices whose
// position is outside SRC.
struct Taps {
  int64_t count = 1;
  std::vector<int64_t> places;
  std::vector<double> weights;
  std::vector<bool> outside;
  bool identity = false;  // index i reads only element i, with weight 1
};

Taps taps_of(const ep_resize_attributes& at, int32_t axis, int64_t from, int64_t to);

}  // namespace tenon::provider::cpu
