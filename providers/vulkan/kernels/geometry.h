// Launch geometry: how work is cut into dispatches and a dispatch into workgroups. Pure, so that sizes no device here
// can hold are tested. Kernels count and index in 32 bits; what is larger is cut into pieces whose bases the host adds
// in 64.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

// Elements of one piece at most, and bytes from an operand's first element in it to its last. A row or a matrix may add
// as many bytes again, and an index is still below 2^31, where the sign of SPIR-V's indices begins.
inline constexpr int64_t most_elements = INT64_C(1) << 30;
inline constexpr int64_t most_bytes = INT64_C(1) << 30;

// Matmul: results are made in tiles of 64 x 64. A dispatch takes so many tiles of so many matrices that they are not
// much more than `most_work` multiplications, at least one, and matrices for the 65535 groups every device has in z.
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

// `groups` workgroups in at most max_x columns; kernels take y * columns + x as their number and leave those past the
// end idle. `groups` is below 2^31, so two axes of 65535 hold it.
Grid grid_of(uint64_t groups, uint32_t max_x);

inline uint64_t divide_up(uint64_t n, uint64_t by) { return (n + by - 1) / by; }

// The space of a launch: dims, and for each operand its strides in elements and its element's size. Offsets are where
// this piece begins, in elements.
struct Space {
  static constexpr int32_t most_operands = 8;

  int32_t rank = 0;
  int32_t operands = 0;
  int64_t dims[EP_MAX_RANK]{};
  int64_t strides[most_operands][EP_MAX_RANK]{};
  int32_t sizes[most_operands]{};
  int64_t offsets[most_operands]{};

  int64_t count() const;
  // Bytes from the first element of `operand` to its last.
  int64_t reach(int32_t operand) const;
  // True if every operand's elements lie one after the other in row-major order.
  bool contiguous() const;
  bool fits() const;
  // The axis to cut: that along which most lies.
  int32_t widest() const;
};

// About half of `n`, where it can be a multiple of 16, so that what is aligned stays so when it is cut.
inline int64_t half_of(int64_t n) { return n < 32 ? n / 2 : n / 2 / 16 * 16; }

// Calls f(piece) for pieces of `space` that fit, which together are the whole, until one does not answer EP_STATUS_OK.
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
