// Launch geometry: cuts work into dispatches, and a dispatch into workgroups. Kernels count and index in 32 bits. The
// host cuts larger work into pieces and adds their offsets in 64 bits. Pure, so that tests cover sizes that no device
// can hold.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

// Limits of one piece: its elements, and the bytes from an operand's first element in the piece to the last. A row or a
// matrix may extend as many bytes further. The index stays below 2^31; SPIR-V would treat a greater index as negative.
inline constexpr int64_t most_elements = INT64_C(1) << 30;
inline constexpr int64_t most_bytes = INT64_C(1) << 30;

// matmul computes tiles of 64 x 64 results. A dispatch takes tiles of several matrices: at least one tile, at most
// about `most_work` multiplications, and at most 65535 matrices, the limit of every device for groups in z.
inline constexpr uint32_t matmul_tile = 64;
inline uint64_t matmul_tile_work(uint64_t k) { return uint64_t{matmul_tile} * matmul_tile * (k + 1); }
struct MatmulCut {
  uint64_t all_tiles;
  uint64_t tiles;
  uint64_t batches;
};
MatmulCut cut_matmul(uint64_t tiles, uint64_t batches, uint64_t k, uint64_t most_work);

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
};

// A grid of `groups` workgroups in at most max_x columns. A workgroup's number is y * columns + x; groups beyond the
// end do nothing. `groups` is below 2^31, so two axes of 65535 are enough.
Grid grid_of(uint64_t groups, uint32_t max_x);

inline uint64_t divide_up(uint64_t n, uint64_t by) { return (n + by - 1) / by; }

// The index space of one piece of a launch: its dims, and the strides in elements and element size of each operand.
// `offsets` give the start of the piece, in elements.
struct Space {
  static constexpr int32_t most_operands = 8;

  int32_t rank = 0;
  int32_t operands = 0;
  int64_t dims[EP_MAX_RANK]{};
  int64_t strides[most_operands][EP_MAX_RANK]{};
  int32_t sizes[most_operands]{};
  int64_t offsets[most_operands]{};

  int64_t count() const;
  // The number of bytes from the first element of `operand` to the last.
  int64_t reach(int32_t operand) const;
  // True if every operand is contiguous in row-major order.
  bool contiguous() const;
  bool fits() const;
  // The axis to cut: the axis that spans most memory.
  int32_t widest() const;
};

// About half of `n`, a multiple of 16 if possible, so that both halves of an aligned piece are aligned.
inline int64_t half_of(int64_t n) { return n < 32 ? n / 2 : n / 2 / 16 * 16; }

// Cuts `space` into pieces within the limits and calls f(piece) for each. Stops at the first status other than
// EP_STATUS_OK.
template <class F>
ep_status for_each_piece(const Space& space, const F& f) {
  if (space.fits()) [[likely]]
    return f(space);
  const int32_t axis = space.widest();
  Space part = space;
  part.dims[axis] = half_of(space.dims[axis]);
  if (const ep_status status = for_each_piece(part, f); status != EP_STATUS_OK) return status;
  for (int32_t i = 0; i < space.operands; ++i) part.offsets[i] += part.dims[axis] * space.strides[i][axis];
  part.dims[axis] = space.dims[axis] - part.dims[axis];
  return for_each_piece(part, f);
}

}  // namespace tenon::provider::vulkan
