// Transposed tiles and reversed rows, compiled once per dispatch target. Vectors of a few columns are interleaved.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/movement/tile.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "providers/cpu/movement/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Loads n elements each of lines 0, n, 2n, ... of the source, side by side. n elements have 16 bytes.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_lines(D d, const T* src, int64_t src_stride) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    constexpr auto lines = static_cast<int64_t>(hn::MaxLanes(hn::Half<D>()));
    return hn::Combine(d, load_lines(half, src + lines * src_stride, src_stride), load_lines(half, src, src_stride));
  }
}

// Transposes rows [0, n) and columns [0, lanes) of a tile. Interleaving the first half of n vectors with the second
// half log2(n) times transposes each n x n block.
template <bool past_cache, class D, class T>
HWY_INLINE void transpose(D d, T* tile, int64_t tile_stride, const T* src, int64_t src_stride) {
  constexpr int n = 16 / sizeof(T);
  hn::Vec<D> in[n], out[n];
  for (int k = 0; k < n; ++k) in[k] = load_lines(d, src + k * src_stride, src_stride);
  for (int stage = 1; stage < n; stage *= 2) {
    for (int k = 0; k < n / 2; ++k) {
      out[2 * k] = hn::InterleaveLower(d, in[k], in[k + n / 2]);
      out[2 * k + 1] = hn::InterleaveUpper(d, in[k], in[k + n / 2]);
    }
    for (int k = 0; k < n; ++k) in[k] = out[k];
  }
  for (int k = 0; k < n; ++k) {
    if constexpr (past_cache)
      hn::Stream(in[k], d, tile + k * tile_stride);
    else
      hn::StoreU(in[k], d, tile + k * tile_stride);
  }
}

// Processes the columns from `begin` on that fill vectors of D, then those that fill shorter vectors. `rows` is a
// multiple of n. Returns the first remaining column.
template <class D, class T>
HWY_INLINE int64_t transpose_columns(D d, T* tile, int64_t tile_stride, const T* src, int64_t src_stride, int64_t rows,
                                     int64_t begin, int64_t columns) {
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(D()));
  int64_t j = begin;
  for (; j + lanes <= columns; j += lanes) {
    for (int64_t i = 0; i < rows; i += 16 / sizeof(T)) {
      transpose<false>(d, tile + i * tile_stride + j, tile_stride, src + j * src_stride + i, src_stride);
    }
  }
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    return transpose_columns(hn::Half<D>(), tile, tile_stride, src, src_stride, rows, j, columns);
  }
  return j;
}

#endif

template <class T>
void fill_tile(void* dst, int64_t dst_stride, const void* from, int64_t src_stride, int64_t rows, int64_t columns) {
  T* tile = static_cast<T*>(dst);
  const T* src = static_cast<const T*>(from);
  int64_t done_rows = 0, done_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  done_rows = rows - rows % static_cast<int64_t>(16 / sizeof(T));
  done_columns =
      transpose_columns(hn::FixedTag<T, HWY_LANES(T)>(), tile, dst_stride, src, src_stride, done_rows, 0, columns);
#endif
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < done_columns ? done_rows : 0; i < rows; ++i) {
      tile[i * dst_stride + j] = src[j * src_stride + i];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
template <class T>
constexpr int64_t line = 64 / sizeof(T);

// Writes one cache line of each of 16 / sizeof(T) rows, past the cache.
template <class T>
HWY_INLINE void stream_lines(T* dst, int64_t dst_stride, const T* src, int64_t src_stride) {
  const hn::FixedTag<T, HWY_LANES(T)> d;
  for (int64_t j = 0; j < line<T>; j += static_cast<int64_t>(HWY_LANES(T))) {
    transpose<true>(d, dst + j, dst_stride, src + j * src_stride, src_stride);
  }
}

template <class T>
void stream_tile(void* dst, int64_t dst_stride, const void* from, int64_t src_stride, int64_t rows) {
  const T* src = static_cast<const T*>(from);
  for (int64_t i = 0; i < rows; i += 16 / sizeof(T)) {
    if (i % line<T> == 0) {
      for (int64_t j = 0; j < line<T>; ++j) hwy::Prefetch(src + j * src_stride + i + 2 * line<T>);
    }
    stream_lines(static_cast<T*>(dst) + i * dst_stride, dst_stride, src + i, src_stride);
  }
}

// Copies n elements, whose total size is a multiple of 16 bytes.
template <class T>
HWY_INLINE void copy_row(T* HWY_RESTRICT dst, const T* HWY_RESTRICT src, int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 16 / sizeof(T)> few;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, src + i), d, dst + i);
  for (; i < n; i += 16 / sizeof(T)) hn::StoreU(hn::LoadU(few, src + i), few, dst + i);
}

template <class T>
void stream_strip(void* dst, int64_t dst_stride, const void* from, int64_t src_stride, int64_t rows, int64_t columns,
                  const void* next) {
  constexpr int64_t apart = strip_side + line<T>;  // an odd number of cache lines
  alignas(64) T copied[strip_columns<T> * apart];
  for (int64_t j = 0; j < columns; ++j) {
    copy_row(copied + j * apart, static_cast<const T*>(from) + j * src_stride, rows);
  }
  const T* ahead = static_cast<const T*>(next);
  int64_t at = 0;
  for (int64_t i = 0; i < rows; i += 16 / sizeof(T)) {
    for (int64_t j = 0; j < columns; j += line<T>) {
      for (int64_t k = 0; k < line<T> / 4; ++k) {  // the number of cache lines written below
        __builtin_prefetch(ahead + at, 0, 2);      // to the L2 cache
        if ((at += line<T>) < rows) continue;
        at = 0;
        ahead += src_stride;
      }
      stream_lines(static_cast<T*>(dst) + i * dst_stride + j, dst_stride, copied + j * apart + i, apart);
    }
  }
}
#endif

template <int kColumns, class T>
void interleave_columns(void* dst, const void* src, int64_t src_stride, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* to = static_cast<T*>(dst);
  const T* from = static_cast<const T*>(src);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, to += kColumns * lanes) {
    const auto first = hn::LoadU(d, from + i), second = hn::LoadU(d, from + src_stride + i);
    if constexpr (kColumns == 2) {
      hn::StoreInterleaved2(first, second, d, to);
    } else if constexpr (kColumns == 3) {
      hn::StoreInterleaved3(first, second, hn::LoadU(d, from + 2 * src_stride + i), d, to);
    } else {
      hn::StoreInterleaved4(first, second, hn::LoadU(d, from + 2 * src_stride + i),
                            hn::LoadU(d, from + 3 * src_stride + i), d, to);
    }
  }
  for (; i < n; ++i) {
    for (int j = 0; j < kColumns; ++j) *to++ = from[j * src_stride + i];
  }
}

template <int kColumns, class T>
void separate_columns(void* dst, int64_t dst_stride, const void* src, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* to = static_cast<T*>(dst);
  const T* from = static_cast<const T*>(src);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, from += kColumns * lanes) {
    hn::Vec<decltype(d)> column[4];
    if constexpr (kColumns == 2) {
      hn::LoadInterleaved2(d, from, column[0], column[1]);
    } else if constexpr (kColumns == 3) {
      hn::LoadInterleaved3(d, from, column[0], column[1], column[2]);
    } else {
      hn::LoadInterleaved4(d, from, column[0], column[1], column[2], column[3]);
    }
    for (int j = 0; j < kColumns; ++j) hn::StoreU(column[j], d, to + j * dst_stride + i);
  }
  for (; i < n; ++i) {
    for (int j = 0; j < kColumns; ++j) to[j * dst_stride + i] = *from++;
  }
}

template <int kColumns>
FewColumns few_columns_of(int32_t size) {
  switch (size) {
    case 1: return {interleave_columns<kColumns, uint8_t>, separate_columns<kColumns, uint8_t>};
    case 2: return {interleave_columns<kColumns, uint16_t>, separate_columns<kColumns, uint16_t>};
    case 4: return {interleave_columns<kColumns, uint32_t>, separate_columns<kColumns, uint32_t>};
    default: return {interleave_columns<kColumns, uint64_t>, separate_columns<kColumns, uint64_t>};
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

FewColumns chosen_few_columns(int32_t size, int64_t columns) {
  switch (columns) {
    case 2: return few_columns_of<2>(size);
    case 3: return few_columns_of<3>(size);
    case 4: return few_columns_of<4>(size);
    default: return {};
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

StreamTiles chosen_stream_tiles([[maybe_unused]] int32_t size) {
#if HWY_TARGET == HWY_SCALAR
  return {};
#else
  switch (size) {
    case 1: return {stream_tile<uint8_t>, stream_strip<uint8_t>};
    case 2: return {stream_tile<uint16_t>, stream_strip<uint16_t>};
    case 4: return {stream_tile<uint32_t>, stream_strip<uint32_t>};
    default: return {stream_tile<uint64_t>, stream_strip<uint64_t>};
  }
#endif
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

TileFunction tile_function(SimdLevel level, int32_t size) { return TENON_CPU_DISPATCH(level, chosen_tile)(size); }

StreamTiles stream_tiles(SimdLevel level, int32_t size) { return TENON_CPU_DISPATCH(level, chosen_stream_tiles)(size); }

FewColumns few_columns(SimdLevel level, int32_t size, int64_t columns) {
  return TENON_CPU_DISPATCH(level, chosen_few_columns)(size, columns);
}

ReverseFunction reverse_function(SimdLevel level, int32_t size) {
  return TENON_CPU_DISPATCH(level, chosen_reverse)(size);
}

}  // namespace tenon::provider::cpu
#endif
