// A block of an f64 product, compiled once per dispatch target. The factors are packed into strips, which the tiles of
// the result read sequentially (K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/f64_matmul/block.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/f64_matmul/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

constexpr int64_t tall = f64_tile_rows;
constexpr int vectors = 2;  // width of a tile
constexpr int64_t most_lanes = hn::MaxLanes(D());
static_assert(vectors * most_lanes <= f64_widest_tile);

HWY_INLINE int64_t wide() { return vectors * static_cast<int64_t>(hn::Lanes(D())); }

// Packs strips of `strip` rows (or columns), each with its k elements in sequence. The last strip is padded with zeros.
HWY_INLINE void pack(double* to, const double* from, int64_t count, int64_t step, int64_t k, int64_t k_step,
                     int64_t strip) {
  for (int64_t first = 0; first < count; first += strip) {
    const int64_t n = std::min(strip, count - first);
    for (int64_t p = 0; p < k; ++p, to += strip) {
      const double* at = from + first * step + p * k_step;
      if (step == 1) {
        for (int64_t i = 0; i < n; ++i) to[i] = at[i];
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = at[i * step];
      }
      for (int64_t i = n; i < strip; ++i) to[i] = 0;
    }
  }
}

// tile = product of a strip of a and a strip of b.
HWY_INLINE void multiply(double* HWY_RESTRICT tile, const double* HWY_RESTRICT a, const double* HWY_RESTRICT b,
                         int64_t k) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[tall][vectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (int64_t p = 0; p < k; ++p) {
    V right[vectors];
    for (int j = 0; j < vectors; ++j) right[j] = hn::Load(d, b + j * lanes);
    for (int64_t i = 0; i < tall; ++i) {
      const V left = hn::Set(d, a[i]);
      for (int j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
    a += tall;
    b += vectors * lanes;
  }
  for (int64_t i = 0; i < tall; ++i) {
    for (int j = 0; j < vectors; ++j) hn::Store(sums[i][j], d, tile + (i * vectors + j) * lanes);
  }
}

HWY_INLINE void put(double* c, int64_t row, int64_t column, const double* tile, int64_t m, int64_t n, bool adds) {
  const int64_t width = wide();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double& place = c[i * row + j * column];
      place = adds ? place + tile[i * width + j] : tile[i * width + j];
    }
  }
}

}  // namespace

void block(const F64Block& x, double* room) {
  HWY_ALIGN double tile[tall * vectors * most_lanes];
  const int64_t width = wide();
  double* right = room;
  double* left = room + f64_room_of_b(x.n, x.k);
  for (int64_t first = 0; first < x.k; first += f64_block_depth) {
    const int64_t k = std::min(f64_block_depth, x.k - first);
    pack(left, x.a + first * x.a_column, x.m, x.a_row, k, x.a_column, tall);
    pack(right, x.b + first * x.b_row, x.n, x.b_column, k, x.b_row, width);
    for (int64_t j = 0; j < x.n; j += width) {
      for (int64_t i = 0; i < x.m; i += tall) {
        multiply(tile, left + i * k, right + j * k, k);
        put(x.c + i * x.c_row + j * x.c_column, x.c_row, x.c_column, tile, std::min(tall, x.m - i),
            std::min(width, x.n - j), first > 0);
      }
    }
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

F64BlockKernel f64_block_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, block); }

}  // namespace tenon::provider::cpu
#endif
