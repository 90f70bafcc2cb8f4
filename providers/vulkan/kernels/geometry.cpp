#include "providers/vulkan/kernels/geometry.h"

#include <algorithm>

namespace tenon::provider::vulkan {
namespace {

// a * b, or the greatest int64_t if the product overflows.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}
int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

}  // namespace

MatmulCut cut_matmul(uint64_t tiles, uint64_t batches, uint64_t k, uint64_t most_work) {
  constexpr uint64_t most_batches = 65535;
  const uint64_t fit = std::max<uint64_t>(most_work / matmul_tile_work(k), 1);
  if (fit < tiles) return {tiles, fit, 1};
  return {tiles, tiles, std::min({fit / tiles, batches, most_batches})};
}

Grid grid_of(uint64_t groups, uint32_t max_x) {
  Grid grid;
  grid.x = static_cast<uint32_t>(std::min<uint64_t>(groups, max_x));
  grid.y = static_cast<uint32_t>(divide_up(groups, grid.x));
  return grid;
}

int64_t Space::count() const {
  int64_t n = 1;
  for (int32_t axis = 0; axis < rank; ++axis) n = product(n, dims[axis]);
  return n;
}

int64_t Space::reach(int32_t operand) const {
  int64_t last = 0;
  for (int32_t axis = 0; axis < rank; ++axis) last = sum(last, product(dims[axis] - 1, strides[operand][axis]));
  return product(sum(last, 1), sizes[operand]);
}

bool Space::contiguous() const {
  int64_t expected = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    for (int32_t i = 0; i < operands; ++i) {
      if (dims[axis] != 1 && strides[i][axis] != expected) return false;
    }
    expected = product(expected, dims[axis]);
  }
  return true;
}

bool Space::fits() const {
  if (count() > most_elements) return false;
  for (int32_t i = 0; i < operands; ++i) {
    if (reach(i) > most_bytes) return false;
  }
  return true;
}

int32_t Space::widest() const {
  int32_t found = 0;
  int64_t most = -1;
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (dims[axis] == 1) continue;
    int64_t width = dims[axis];  // used if no operand has a stride along the axis
    for (int32_t i = 0; i < operands; ++i) width = std::max(width, product(dims[axis], strides[i][axis]));
    if (width > most) {
      most = width;
      found = axis;
    }
  }
  return found;
}

}  // namespace tenon::provider::vulkan
