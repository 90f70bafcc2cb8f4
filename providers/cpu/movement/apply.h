// How the updates of a scatter change positions, by op and type.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

struct Apply {
  // Applies update i to places[positions[i] * stride + lines[i]], in order, for i < n. If `lines` is NULL, all are 0.
  void (*each)(void* places, const int64_t* positions, int64_t stride, const int64_t* lines, const void* updates,
               int64_t n);
  // Applies update i to places[i] for i < n.
  void (*row)(void* places, const void* updates, int64_t n);
};

// `op` is one of ep_scatter_op. Assignment moves bits, so only the size of `dtype` matters; other ops compute in
// `dtype`, a number of 1 to 8 bytes that is not a narrow float.
Apply apply_of(int32_t op, int32_t dtype);

}  // namespace tenon::provider::cpu
