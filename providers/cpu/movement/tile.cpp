// Transposed tiles and reversed rows, compiled once per dispatch target: vectors of a few columns are interleaved.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/movement/tile.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "providers/cpu/movement/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Columns [j, j + group) of a tile whose rows are a whole number of vectors.
template <class T, int group>
HWY_INLINE void interleave(T* tile, const T* src, int64_t src_stride, int64_t rows) {
  const hn::CappedTag<T, 32 / sizeof(T)> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T mixed[group * hn::MaxLanes(d)];
  for (int64_t i = 0; i < rows; i += lanes) {
    if constexpr (group == 4) {
      hn::StoreInterleaved4(hn::LoadU(d, src + i), hn::LoadU(d, src + src_stride + i),
                            hn::LoadU(d, src + 2 * src_stride + i), hn::LoadU(d, src + 3 * src_stride + i), d, mixed);
    } else {
      hn::StoreInterleaved2(hn::LoadU(d, src + i), hn::LoadU(d, src + src_stride + i), d, mixed);
    }
    for (int64_t k = 0; k < lanes; ++k)
      hwy::CopyBytes<group * sizeof(T)>(mixed + k * group, tile + (i + k) * tile_side);
  }
}

template <class T>
void fill_tile(void* row, const void* from, int64_t src_stride, int64_t rows, int64_t columns) {
  T* tile = static_cast<T*>(row);
  const T* src = static_cast<const T*>(from);
  constexpr int group = sizeof(T) == 8 ? 2 : 4;
  int64_t j = 0;
  if (rows == tile_side) {
    for (; j + group <= columns; j += group) interleave<T, group>(tile + j, src + j * src_stride, src_stride, rows);
  }
  for (; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) tile[i * tile_side + j] = src[j * src_stride + i];
  }
}

template <class T>
void reverse_row(void* row, const void* last, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(row);
  const T* from = static_cast<const T*>(last);
  int64_t i = 0;
  if constexpr (sizeof(T) >= 4) {
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Reverse(d, hn::LoadU(d, from - i - lanes + 1)), d, out + i);
  }
  for (; i < n; ++i) out[i] = from[-i];
}

}  // namespace

ReverseFunction chosen_reverse(int32_t size) {
  switch (size) {
    case 1: return reverse_row<uint8_t>;
    case 2: return reverse_row<uint16_t>;
    case 4: return reverse_row<uint32_t>;
    default: return reverse_row<uint64_t>;
  }
}

TileFunction chosen_tile(int32_t size) {
  switch (size) {
    case 1: return fill_tile<uint8_t>;
    case 2: return fill_tile<uint16_t>;
    case 4: return fill_tile<uint32_t>;
    default: return fill_tile<uint64_t>;
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

TileFunction tile_function(SimdLevel level, int32_t size) { return TENON_CPU_DISPATCH(level, chosen_tile)(size); }

ReverseFunction reverse_function(SimdLevel level, int32_t size) {
  return TENON_CPU_DISPATCH(level, chosen_reverse)(size);
}

}  // namespace tenon::provider::cpu
#endif
