#include "providers/cpu/movement/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/movement/tile.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// Walks axes backwards that the source has in reverse order, unless the destination has unit stride there.
void turn_axes(StridedCopy* copy, char** dst, const char** src) {
  for (int32_t axis = 0; axis < copy->rank; ++axis) {
    if (copy->src_strides[axis] != -1 || copy->dst_strides[axis] == 1) continue;
    const int64_t last = copy->dims[axis] - 1;
    *dst += last * copy->dst_strides[axis] * copy->size;
    *src -= last * copy->size;
    copy->dst_strides[axis] = -copy->dst_strides[axis];
    copy->src_strides[axis] = 1;
  }
}

// Sorts the axes by the distances in the destination.
void sort_axes(StridedCopy* copy) {
  for (int32_t axis = 1; axis < copy->rank; ++axis) {
    for (int32_t i = axis; i > 0 && std::abs(copy->dst_strides[i - 1]) < std::abs(copy->dst_strides[i]); --i) {
      std::swap(copy->dims[i - 1], copy->dims[i]);
      std::swap(copy->dst_strides[i - 1], copy->dst_strides[i]);
      std::swap(copy->src_strides[i - 1], copy->src_strides[i]);
    }
  }
}

void fold(StridedCopy* copy) {
  int32_t kept = 0;
  for (int32_t axis = 0; axis < copy->rank; ++axis) {
    if (copy->dims[axis] == 1) continue;
    const bool joins = kept > 0 && copy->dst_strides[kept - 1] == copy->dims[axis] * copy->dst_strides[axis] &&
                       copy->src_strides[kept - 1] == copy->dims[axis] * copy->src_strides[axis];
    if (joins) {
      --kept;
      copy->dims[kept] *= copy->dims[axis];
    } else {
      copy->dims[kept] = copy->dims[axis];
    }
    copy->dst_strides[kept] = copy->dst_strides[axis];
    copy->src_strides[kept] = copy->src_strides[axis];
    ++kept;
  }
  if (kept == 0) {
    copy->dims[0] = copy->dst_strides[0] = copy->src_strides[0] = 1;
    kept = 1;
  }
  copy->rank = kept;
}

// The shortest destination row for which tiles pay, such as the channels of a picture.
constexpr int64_t shortest = 2;

// The number of elements of a cache line.
template <class T>
constexpr int64_t line = 64 / sizeof(T);

// Transposes one tile: a column of the source, contiguous along the unit axis, becomes a row of the destination. A
// buffer holds the tile, so that each cache line of source and destination is accessed once. Without it, large
// power-of-two strides would map all lines to one set of the cache.
template <class T>
void move_tile(TileFunction fill, T* dst, int64_t dst_stride, const T* src, int64_t src_stride, int64_t rows,
               int64_t columns) {
  constexpr int64_t tile = tile_side<T>;
  alignas(64) T buffer[tile][tile];
  fill(buffer, tile, src, src_stride, rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    if (columns == tile)
      std::memcpy(dst + i * dst_stride, buffer[i], sizeof buffer[0]);
    else
      std::memcpy(dst + i * dst_stride, buffer[i], static_cast<size_t>(columns) * sizeof(T));
  }
}

// Like the function above, for any number of rows and columns.
template <class T>
void move_tiles(TileFunction fill, T* dst, int64_t dst_stride, const T* src, int64_t src_stride, int64_t rows,
                int64_t columns) {
  constexpr int64_t tile = tile_side<T>;
  for (int64_t i = 0; i < rows; i += tile) {
    for (int64_t j = 0; j < columns; j += tile) {
      move_tile(fill, dst + i * dst_stride + j, dst_stride, src + j * src_stride + i, src_stride,
                std::min(tile, rows - i), std::min(tile, columns - j));
    }
  }
}

// Returns the axis along which the source has unit stride, if the destination has unit stride along another one, the
// last; else -1. For a short tile of a few columns, an element-wise copy is faster, so it returns -1 too.
int32_t transposed_axis(const StridedCopy& copy) {
  const int32_t last = copy.rank - 1;
  if (copy.dst_strides[last] != 1 || copy.src_strides[last] <= 1 || copy.dims[last] < shortest) return -1;
  for (int32_t axis = 0; axis < last; ++axis) {
    if (copy.src_strides[axis] == 1 && copy.dims[axis] >= (copy.dims[last] <= 4 ? 32 : 4)) return axis;
  }
  return -1;
}

// The tiles of a transpose, in processing order.
struct Tiles {
  // The first element of tile `unit` along both axes, and its offset, in elements.
  struct Place {
    int64_t i, j, to, from;
  };

  Tiles(const StridedCopy& all, int32_t unit_axis, int64_t most_rows, int64_t most_columns, bool along_source)
      : copy(all), axis(unit_axis), rows(most_rows), columns(most_columns), source_first(along_source) {
    down = (copy.dims[axis] + rows - 1) / rows;
    across = (copy.dims[copy.rank - 1] + columns - 1) / columns;
    count = down * across;
    for (int32_t k = 0; k < copy.rank - 1; ++k) count *= k == axis ? 1 : copy.dims[k];
  }

  Place place(int64_t unit) const {
    const int32_t last = copy.rank - 1;
    const int64_t within = unit % (down * across);
    const int64_t i = (source_first ? within % down : within / across) * rows;
    const int64_t j = (source_first ? within / down : within % across) * columns;
    Place at{i, j, i * copy.dst_strides[axis] + j, i + j * copy.src_strides[last]};
    int64_t rest = unit / across / down;
    for (int32_t k = last - 1; k >= 0; --k) {
      if (k == axis) continue;
      at.to += rest % copy.dims[k] * copy.dst_strides[k];
      at.from += rest % copy.dims[k] * copy.src_strides[k];
      rest /= copy.dims[k];
    }
    return at;
  }

  const StridedCopy& copy;
  int32_t axis;           // the axis along which the source has unit stride: down a tile
  int64_t rows, columns;  // size of a whole tile
  bool source_first;      // tiles are ordered along the source
  int64_t down, across, count;
};

// True if a transpose past the cache should use strips: a column of the source is long, and the columns that fill a
// cache line of the destination map to few sets of the L1 cache. If rows of the destination share a page, columns of
// wide elements are faster without strips.
template <class T>
bool goes_in_strips(const StridedCopy& copy, int32_t axis) {
  return copy.dims[axis] >= strip_side && copy.src_strides[copy.rank - 1] % 256 == 0 &&
         (sizeof(T) <= 2 || copy.dst_strides[axis] * static_cast<int64_t>(sizeof(T)) >= 4096);
}

// Past the cache, a tile is one cache line of the destination wide, and tiles are ordered along the source: its rows
// are read from end to end, and each line of the destination is written whole. This is faster than square tiles. Strips
// are ordered along the destination.
template <class T>
void copy_tiles(const StridedCopy& copy, int32_t axis, char* dst, const char* src, SimdLevel level, int32_t threads) {
  const TileFunction fill = tile_function(level, copy.size);
  const int32_t last = copy.rank - 1;
  int64_t bytes = copy.size;
  bool lines = reinterpret_cast<uintptr_t>(dst) % 64 == 0;
  for (int32_t k = 0; k <= last; ++k) {
    bytes *= copy.dims[k];
    if (k < last) lines &= copy.dst_strides[k] % line<T> == 0;
  }
  const StreamTiles stream = lines && bytes >= stream_bytes ? stream_tiles(level, copy.size) : StreamTiles{};
  const bool streams = stream.tile != nullptr, strips = streams && goes_in_strips<T>(copy, axis);
  const Tiles tiles(copy, axis, strips ? strip_side : tile_side<T>,
                    strips ? strip_columns<T> : (streams ? line<T> : tile_side<T>), streams && !strips);
  const int64_t dst_stride = copy.dst_strides[axis], src_stride = copy.src_strides[last];
  parallel(threads, bytes / 8, [&](int32_t part, int32_t parts) {
    const int64_t begin = tiles.count * part / parts, end = tiles.count * (part + 1) / parts;
    Tiles::Place next = tiles.place(begin);
    for (int64_t unit = begin; unit < end; ++unit) {
      const Tiles::Place at = next;
      if (unit + 1 < end) next = tiles.place(unit + 1);
      T* to = reinterpret_cast<T*>(dst) + at.to;
      const T* from = reinterpret_cast<const T*>(src) + at.from;
      const int64_t rows = std::min(tiles.rows, copy.dims[axis] - at.i);
      const int64_t columns = std::min(tiles.columns, copy.dims[last] - at.j);
      const int64_t whole = streams ? columns - columns % line<T> : 0;  // multiple of a cache line
      const int64_t done = whole > 0 ? rows - rows % static_cast<int64_t>(16 / sizeof(T)) : 0;
      if (whole > 0 && strips)
        stream.strip(to, dst_stride, from, src_stride, done, whole, reinterpret_cast<const T*>(src) + next.from);
      else if (whole > 0)
        stream.tile(to, dst_stride, from, src_stride, done);
      move_tiles(fill, to + done * dst_stride, dst_stride, from + done, src_stride, rows - done, whole);
      move_tiles(fill, to + whole, dst_stride, from + whole * src_stride, src_stride, rows, columns - whole);
    }
    if (streams) store_fence();
  });
}

void copy_tiles(const StridedCopy& copy, int32_t axis, char* dst, const char* src, SimdLevel level, int32_t threads) {
  switch (copy.size) {
    case 1: return copy_tiles<uint8_t>(copy, axis, dst, src, level, threads);
    case 2: return copy_tiles<uint16_t>(copy, axis, dst, src, level, threads);
    case 4: return copy_tiles<uint32_t>(copy, axis, dst, src, level, threads);
    default: return copy_tiles<uint64_t>(copy, axis, dst, src, level, threads);
  }
}

// The two axes of a transpose of few columns: columns that follow each other in one operand, and rows that do in the
// other one. The rank of `copy` if there is none.
struct FewColumnAxes {
  int32_t columns, rows;
};
FewColumnAxes few_column_axes(const StridedCopy& copy, const int64_t* dense, const int64_t* spread) {
  FewColumnAxes axes{copy.rank, copy.rank};
  for (int32_t axis = 0; axis < copy.rank; ++axis) {
    if (dense[axis] == 1) axes.columns = axis;
    if (spread[axis] == 1) axes.rows = axis;
  }
  const bool follow = axes.columns < copy.rank && axes.rows < copy.rank && axes.columns != axes.rows &&
                      dense[axes.rows] == copy.dims[axes.columns] && copy.dims[axes.rows] >= 16;
  return follow ? axes : FewColumnAxes{copy.rank, copy.rank};
}

// Copies between pixels of 2 to 4 elements and planes, either way. False if `copy` is something else.
bool copy_few_columns(const StridedCopy& copy, char* dst, const char* src, SimdLevel level, int32_t threads) {
  FewColumnAxes axes = few_column_axes(copy, copy.dst_strides, copy.src_strides);
  const bool interleaves = axes.rows < copy.rank;
  if (!interleaves) axes = few_column_axes(copy, copy.src_strides, copy.dst_strides);
  if (axes.rows == copy.rank) return false;
  const FewColumns move = few_columns(level, copy.size, copy.dims[axes.columns]);
  if (move.interleave == nullptr) return false;
  StridedCopy outer = copy;  // its elements are pieces of rows
  outer.dims[axes.columns] = 1;
  outer.dims[axes.rows] = (copy.dims[axes.rows] + 4095) / 4096;
  outer.dst_strides[axes.rows] *= 4096;
  outer.src_strides[axes.rows] *= 4096;
  int64_t units = 1, elements = 1;
  for (int32_t axis = 0; axis < copy.rank; ++axis) {
    units *= outer.dims[axis];
    elements *= copy.dims[axis];
  }
  parallel(threads, elements * copy.size / 8, [&](int32_t part, int32_t parts) {
    for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
      int64_t rest = unit, to = 0, from = 0, n = 0;
      for (int32_t axis = copy.rank; axis-- > 0;) {
        const int64_t at = rest % outer.dims[axis];
        rest /= outer.dims[axis];
        to += at * outer.dst_strides[axis] * copy.size;
        from += at * outer.src_strides[axis] * copy.size;
        if (axis == axes.rows) n = std::min<int64_t>(4096, copy.dims[axis] - at * 4096);
      }
      if (interleaves) {
        move.interleave(dst + to, src + from, copy.src_strides[axes.columns], n);
      } else {
        move.separate(dst + to, copy.dst_strides[axes.columns], src + from, n);
      }
    }
  });
  return true;
}

// Rows of at most this many elements are too short for a function call.
constexpr int64_t short_row = 16;

// Copies rows [begin, end) of a plane, `length` elements each. `known` is the length at compile time, or 0.
template <class T, int known>
void move_short_rows(const StridedCopy& copy, T* out, const T* in, int64_t begin, int64_t end) {
  const int32_t last = copy.rank - 1;
  const int64_t length = known > 0 ? known : copy.dims[last];
  const int64_t to_row = copy.dst_strides[last - 1], to = copy.dst_strides[last];
  const int64_t from_row = copy.src_strides[last - 1], from = copy.src_strides[last];
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < length; ++j) out[i * to_row + j * to] = in[i * from_row + j * from];
  }
}

template <class T>
void move_short_rows(const StridedCopy& copy, char* dst, const char* src, int64_t begin, int64_t end) {
  auto* const out = reinterpret_cast<T*>(dst);
  const auto* const in = reinterpret_cast<const T*>(src);
  switch (copy.dims[copy.rank - 1]) {
    case 2: return move_short_rows<T, 2>(copy, out, in, begin, end);
    case 3: return move_short_rows<T, 3>(copy, out, in, begin, end);
    case 4: return move_short_rows<T, 4>(copy, out, in, begin, end);
    default: return move_short_rows<T, 0>(copy, out, in, begin, end);
  }
}

void move_short_rows(const StridedCopy& copy, char* dst, const char* src, int64_t begin, int64_t end) {
  switch (copy.size) {
    case 1: return move_short_rows<uint8_t>(copy, dst, src, begin, end);
    case 2: return move_short_rows<uint16_t>(copy, dst, src, begin, end);
    case 4: return move_short_rows<uint32_t>(copy, dst, src, begin, end);
    default: return move_short_rows<uint64_t>(copy, dst, src, begin, end);
  }
}

// Iterates over the first `axes` axes of a copy, from a given position on; over its rows, if one axis is left.
class Walk {
 public:
  Walk(const StridedCopy& copy, int32_t axes, int64_t place) : copy_(copy), axes_(axes) {
    for (int32_t axis = axes - 1; axis >= 0; --axis) {
      index_[axis] = place % copy.dims[axis];
      place /= copy.dims[axis];
      to_ += index_[axis] * copy.dst_strides[axis];
      from_ += index_[axis] * copy.src_strides[axis];
    }
  }
  // The offset of the current position, in elements.
  int64_t to() const { return to_; }
  int64_t from() const { return from_; }
  void next() {
    for (int32_t axis = axes_ - 1; axis >= 0; --axis) {
      to_ += copy_.dst_strides[axis];
      from_ += copy_.src_strides[axis];
      if (++index_[axis] < copy_.dims[axis]) return;
      index_[axis] = 0;
      to_ -= copy_.dims[axis] * copy_.dst_strides[axis];
      from_ -= copy_.dims[axis] * copy_.src_strides[axis];
    }
  }

 private:
  const StridedCopy& copy_;
  int32_t axes_;
  int64_t index_[8];
  int64_t to_ = 0;
  int64_t from_ = 0;
};

// Copies planes of the last two axes, divided along the last but one.
void copy_short_rows(const StridedCopy& copy, char* dst, const char* src, int32_t threads) {
  const int32_t plane = copy.rank - 2;
  const int64_t rows = copy.dims[plane];
  int64_t planes = 1;
  for (int32_t axis = 0; axis < plane; ++axis) planes *= copy.dims[axis];
  const int64_t pieces = (rows + 4095) / 4096;
  parallel(threads, planes * rows * copy.dims[plane + 1] / 2, [&](int32_t part, int32_t parts) {
    const int64_t units = planes * pieces, end = units * (part + 1) / parts;
    int64_t unit = units * part / parts;
    Walk at(copy, plane, unit / pieces);
    for (; unit < end; ++unit) {
      const int64_t piece = pieces == 1 ? 0 : unit % pieces;
      move_short_rows(copy, dst + at.to() * copy.size, src + at.from() * copy.size, rows * piece / pieces,
                      rows * (piece + 1) / pieces);
      if (piece + 1 == pieces) at.next();
    }
  });
}

}  // namespace

StridedCopy to_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides) {
  StridedCopy copy;
  copy.rank = static_cast<int32_t>(dims.size());
  copy.size = size;
  int64_t step = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    copy.dims[axis] = dims[axis];
    copy.src_strides[axis] = strides[axis];
    copy.dst_strides[axis] = step;
    step *= dims[axis];
  }
  return copy;
}

StridedCopy from_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides) {
  StridedCopy copy = to_dense(size, dims, strides);
  std::swap(copy.src_strides, copy.dst_strides);
  return copy;
}

void strided_copy(StridedCopy copy, char* dst, const char* src, SimdLevel level, int32_t threads) {
  turn_axes(&copy, &dst, &src);
  sort_axes(&copy);
  fold(&copy);
  if (copy_few_columns(copy, dst, src, level, threads)) return;
  if (const int32_t axis = transposed_axis(copy); axis >= 0) return copy_tiles(copy, axis, dst, src, level, threads);
  const int32_t last = copy.rank - 1;
  const int64_t length = copy.dims[last];
  if (copy.rank > 1 && length <= short_row && copy.dims[last - 1] > 1) return copy_short_rows(copy, dst, src, threads);
  const ConvertFunction move = move_elements(copy.size);
  const ReverseFunction reverse =
      copy.dst_strides[last] == 1 && copy.src_strides[last] == -1 ? reverse_function(level, copy.size) : nullptr;
  int64_t rows = 1;
  for (int32_t axis = 0; axis < last; ++axis) rows *= copy.dims[axis];
  // A single long row is divided too.
  const int64_t pieces = rows >= threads ? 1 : (length + 16383) / 16384;
  const auto move_part = [&](const Walk& at, int64_t begin, int64_t end) {
    char* const to = dst + (at.to() + begin * copy.dst_strides[last]) * copy.size;
    const char* const from = src + (at.from() + begin * copy.src_strides[last]) * copy.size;
    if (reverse != nullptr) return reverse(to, from, end - begin);
    move(to, copy.dst_strides[last], from, copy.src_strides[last], end - begin);
  };
  if (rows * pieces == 1) return move_part(Walk(copy, last, 0), 0, length);
  parallel(threads, rows * length * copy.size / 8, [&](int32_t part, int32_t parts) {
    const int64_t units = rows * pieces;
    const int64_t end = units * (part + 1) / parts;
    int64_t unit = units * part / parts;
    Walk at(copy, last, unit / pieces);
    if (pieces == 1) {
      for (; unit < end; ++unit, at.next()) move_part(at, 0, length);
      return;
    }
    for (; unit < end; ++unit) {
      const int64_t piece = unit % pieces;
      move_part(at, length * piece / pieces, length * (piece + 1) / pieces);
      if (piece + 1 == pieces) at.next();
    }
  });
}

void copy_operand(int32_t size, const OperandShape& dst, char* to, const OperandShape& src, const char* from,
                  SimdLevel level, int32_t threads) {
  StridedCopy copy;
  copy.rank = dst.rank;
  copy.size = size;
  std::copy_n(src.dims, dst.rank, copy.dims);
  std::copy_n(dst.strides, dst.rank, copy.dst_strides);
  std::copy_n(src.strides, dst.rank, copy.src_strides);
  strided_copy(copy, to, from, level, threads);
}

bool overlap(int32_t size, const OperandShape& dst, const char* to, const OperandShape& src, const char* from) {
  const auto end_of = [size](const OperandShape& shape, const char* base) {
    int64_t last = 0;
    for (int32_t axis = 0; axis < shape.rank; ++axis) last += (shape.dims[axis] - 1) * shape.strides[axis];
    return base + (last + 1) * size;
  };
  return to < end_of(src, from) && from < end_of(dst, to);
}

bool has_neighbours_of(const OperandShape& dst, const OperandShape& src) {
  for (int32_t axis = dst.rank - 1; axis >= 0; --axis) {
    if (dst.dims[axis] > 1 && dst.strides[axis] == 1) return src.strides[axis] == 1;
  }
  return std::equal(dst.strides, dst.strides + dst.rank, src.strides);
}

}  // namespace tenon::provider::cpu
