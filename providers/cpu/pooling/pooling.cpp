// pooling: maximum (with or without positions), average and norms, with 1 to 3 spatial dims.
//
// A kernel (window.h) pools one window of channels that are adjacent in memory. Planes with channels first are copied
// side by side, so that they are like channels, a strip of rows at a time. Few planes, planes whose rows are strided,
// and norms of other powers than 1 and 2 are pooled one row of the result at a time: each tap of the window is added
// to, or compared with, all results of the row that it affects. The order of taps is always the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "providers/cpu/movement/tile.h"
#include "providers/cpu/pooling/plane.h"
#include "providers/cpu/pooling/pooling.h"
#include "providers/cpu/pooling/window.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

template <class T>
void add_tap(T* sums, const T* src, int64_t step, int64_t n) {
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) sums[i] += src[i];
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i] += src[i * step];
  }
}

template <class T>
T greater_of(T x, T best) {
  return x > best || scalar::ep_isnan(x) ? x : best;
}

template <class T>
void max_tap(T* most, const T* src, int64_t step, int64_t n) {
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) most[i] = greater_of(src[i], most[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) most[i] = greater_of(src[i * step], most[i]);
  }
}

template <class T>
void max_tap_with_position(T* most, int64_t* where, const T* src, int64_t step, int64_t position, int64_t position_step,
                           int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T x = src[i * step], best = most[i];
    // Without branches, which would be mispredicted.
    const int open = scalar::ep_isnan(best) ? 0 : 1, greater = x > best ? 1 : 0, nan = scalar::ep_isnan(x) ? 1 : 0;
    const int takes = (where[i] < 0 ? 1 : 0) | ((greater | nan) & open);
    most[i] = takes != 0 ? x : best;
    where[i] = takes != 0 ? position + i * position_step : where[i];
  }
}

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// Computes |x|^p of each element, and the p-th root. With p = 0, does neither.
template <class T>
void to_powers(T* values, int64_t n, double p) {
  if constexpr (std::is_floating_point_v<T>) {
    if (p == 2) {
      for (int64_t i = 0; i < n; ++i) values[i] *= values[i];
    } else if (p == 1) {
      for (int64_t i = 0; i < n; ++i) values[i] = std::abs(values[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) values[i] = std::pow(std::abs(values[i]), static_cast<T>(p));
    }
  }
}

template <class T>
void to_roots(T* values, int64_t n, double p) {
  if constexpr (std::is_floating_point_v<T>) {
    if (p == 2) {
      for (int64_t i = 0; i < n; ++i) values[i] = std::sqrt(values[i]);
    } else if (p != 1) {
      for (int64_t i = 0; i < n; ++i) values[i] = std::pow(values[i], static_cast<T>(1 / p));
    }
  }
}

using Position = std::array<int64_t, 3>;

// Returns the divisor along one axis for a sum over the window at `position`.
int64_t window_length(const Plane& p, int32_t op, int axis, int64_t position) {
  const TapRange inside = taps_at(p, axis, position);
  return op == EP_POOLING_AVERAGE ? inside.last - inside.first : padded_taps(p, axis, position);
}

int64_t window_size(const Plane& p, int32_t op, const Position& at) {
  int64_t count = 1;
  for (int axis = 0; axis < 3; ++axis) count *= window_length(p, op, axis, at[static_cast<size_t>(axis)]);
  return std::max<int64_t>(count, 1);
}

// Data shared by all rows of a launch.
struct Line {
  std::vector<TapRange> reach;   // results_of_tap for each tap of the innermost axis
  std::vector<int64_t> lengths;  // window_length for each result of a sum

  Line(const Plane& p, int32_t op) {
    for (int64_t k = 0; k < p.kernel[2]; ++k) reach.push_back(results_of_tap(p, k));
    if (op == EP_POOLING_MAX || op == EP_POOLING_LP) return;
    for (int64_t x = 0; x < p.dst[2]; ++x) lengths.push_back(window_length(p, op, 2, x));
  }
};

// Pools row (z, y) of a plane into `row`. Writes the positions of maxima into `where` if it is not NULL.
template <class T>
void pool_row(const Plane& p, const Line& shared, int32_t op, const T* src, int64_t z, int64_t y, T* row,
              int64_t* where) {
  const TapRange tz = taps_at(p, 0, z);
  const TapRange ty = taps_at(p, 1, y);
  std::fill_n(row, p.dst[2], op == EP_POOLING_MAX ? lowest<T>() : T{0});
  if (where != nullptr) std::fill_n(where, p.dst[2], int64_t{-1});
  for (int64_t kz = tz.first; kz < tz.last; ++kz) {
    const int64_t sz = z * p.stride[0] - p.pad[0] + kz * p.dilation[0];
    for (int64_t ky = ty.first; ky < ty.last; ++ky) {
      const int64_t sy = y * p.stride[1] - p.pad[1] + ky * p.dilation[1];
      const T* line = src + sz * p.src_strides[0] + sy * p.src_strides[1];
      for (int64_t kx = 0; kx < p.kernel[2]; ++kx) {
        const TapRange results = shared.reach[static_cast<size_t>(kx)];
        if (results.first >= results.last) continue;
        const int64_t sx = results.first * p.stride[2] - p.pad[2] + kx * p.dilation[2];
        const T* from = line + sx * p.src_strides[2];
        const int64_t step = p.stride[2] * p.src_strides[2];
        const int64_t n = results.last - results.first;
        if (where != nullptr) {
          const int64_t position = (sz * p.src[1] + sy) * p.src[2] + sx;
          max_tap_with_position(row + results.first, where + results.first, from, step, position, p.stride[2], n);
        } else if (op == EP_POOLING_MAX) {
          max_tap(row + results.first, from, step, n);
        } else {
          add_tap(row + results.first, from, step, n);
        }
      }
    }
  }
  if (op == EP_POOLING_MAX || op == EP_POOLING_LP) return;
  const int64_t height = window_length(p, op, 0, z) * window_length(p, op, 1, y);
  for (int64_t x = 0; x < p.dst[2]; ++x) {
    const int64_t size = std::max<int64_t>(height * shared.lengths[static_cast<size_t>(x)], 1);
    row[x] = static_cast<T>(row[x] / static_cast<T>(size));
  }
}

// The window of a result. All windows whose taps lie within the line have the same offsets.
struct Window {
  std::vector<int64_t> offsets;  // by tap: its offset in SRC, relative to the result's position in its line
  std::vector<int64_t> places;   // by tap: the same in a dense plane
  int64_t count = 1;             // divisor of a sum
  bool whole = false;            // all taps lie within the line

  void find(const Plane& p, int32_t op, const Position& at) {
    const int64_t left = at[2] * p.stride[2] - p.pad[2];
    const bool inside = left >= 0 && left + (p.kernel[2] - 1) * p.dilation[2] < p.src[2];
    if (inside && whole && at[2] != 0) return;
    whole = inside;
    offsets.clear();
    places.clear();
    const TapRange taps[3] = {taps_at(p, 0, at[0]), taps_at(p, 1, at[1]), taps_at(p, 2, at[2])};
    for (int64_t kz = taps[0].first; kz < taps[0].last; ++kz) {
      const int64_t z = at[0] * p.stride[0] - p.pad[0] + kz * p.dilation[0];
      for (int64_t ky = taps[1].first; ky < taps[1].last; ++ky) {
        const int64_t y = at[1] * p.stride[1] - p.pad[1] + ky * p.dilation[1];
        for (int64_t kx = taps[2].first; kx < taps[2].last; ++kx) {
          const int64_t x = kx * p.dilation[2] - p.pad[2];
          offsets.push_back(z * p.src_strides[0] + y * p.src_strides[1] + x * p.src_strides[2]);
          places.push_back((z * p.src[1] + y) * p.src[2] + x);
        }
      }
    }
    if (op != EP_POOLING_MAX) count = window_size(p, op, at);
  }
};

// The kernel for the attributes; NULL: none.
WindowFunction window_function(const WindowKernel& kernel, const ep_pooling_attributes& at, bool positions) {
  if (at.op == EP_POOLING_MAX) return positions ? kernel.maximum_with_positions : kernel.maximum;
  if (at.op != EP_POOLING_LP) return kernel.average;
  return at.p == 1 ? kernel.magnitudes : at.p == 2 ? kernel.norm : nullptr;
}

template <class T>
class PoolingPrimitive final : public ep_primitive {
 public:
  PoolingPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        format_(desc.operands[0].dtype, on.simd),
        src_(find_operand(desc, EP_ROLE_SRC)),
        indices_(find_operand(desc, EP_ROLE_DST_INDICES)),
        kernel_(window_kernel(on.simd, desc.operands[0].dtype)),
        window_(window_function(kernel_, desc.attributes.pooling, indices_ >= 0)),
        tile_(tile_function(on.simd, format_.size)),
        tile_positions_(tile_function(on.simd, sizeof(int32_t))) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch, 0);
    const OperandShape src = shape(launch, src_);
    const Plane plane(desc_.attributes.pooling, src, dst, indices_ >= 0 ? shape(launch, indices_).strides : nullptr);
    const int64_t planes = dst.dims[0] * dst.dims[1];
    const int64_t taps = plane.kernel[0] * plane.kernel[1] * plane.kernel[2];
    const int64_t results = plane.dst[0] * plane.dst[1] * plane.dst[2];
    const bool fits = indices_ < 0 || plane.src[0] * plane.src[1] * plane.src[2] <= INT32_MAX;
    if (window_ != nullptr && fits) {
      if (dst.dims[1] > 1 && dst.strides[1] == 1 && src.strides[1] == 1) {
        pool_channels(launch, plane, dst, src);
        return EP_STATUS_OK;
      }
      if (pool_side_by_side(launch, plane, dst, src)) return EP_STATUS_OK;
    }
    parallel(device->threads, planes * results * taps / 2, [&](int32_t part, int32_t parts) {
      const Line shared(plane, desc_.attributes.pooling.op);
      std::vector<T> dense;
      std::vector<T> row(static_cast<size_t>(plane.dst[2]));
      std::vector<int64_t> where(indices_ < 0 ? 0 : row.size());
      for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; ++i) {
        const int64_t n = i / dst.dims[1];
        const int64_t c = i % dst.dims[1];
        const char* from = address_of(launch.operands[src_]) + (n * src.strides[0] + c * src.strides[1]) * format_.size;
        pool_plane(launch, plane, shared, from, n, c, &dense, &row, &where);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  char* element(const ep_launch& launch, int32_t i, int64_t offset) const {
    return address_of(launch.operands[i]) + offset * format_.size;
  }

  // Pools all channels of each result, which are adjacent in memory.
  void pool_channels(const ep_launch& launch, const Plane& p, const OperandShape& dst, const OperandShape& src) const {
    const int64_t results = p.dst[0] * p.dst[1] * p.dst[2], images = dst.dims[0] * results;
    const int64_t work = images * dst.dims[1] * p.kernel[0] * p.kernel[1] * p.kernel[2] / 12;
    parallel(device->threads, work, [&](int32_t part, int32_t parts) {
      Window window;
      std::vector<int32_t> places(indices_ >= 0 ? static_cast<size_t>(dst.dims[1]) : 0);
      for (int64_t i = images * part / parts; i < images * (part + 1) / parts; ++i) {
        const int64_t n = i / results;
        const Position at = {i % results / p.dst[2] / p.dst[1], i / p.dst[2] % p.dst[1], i % p.dst[2]};
        const int64_t from = n * src.strides[0] + at[2] * p.stride[2] * p.src_strides[2];
        const int64_t to =
            n * dst.strides[0] + at[0] * p.dst_strides[0] + at[1] * p.dst_strides[1] + at[2] * p.dst_strides[2];
        pool_window(p, at, element(launch, src_, from), element(launch, 0, to), dst.dims[1], places.data(), &window);
        if (indices_ >= 0) write_positions(launch, p, n, at, places);
      }
    });
  }

  void write_positions(const ep_launch& launch, const Plane& p, int64_t n, const Position& at,
                       const std::vector<int32_t>& places) const {
    const OperandShape positions = shape(launch, indices_);
    int64_t to = n * positions.strides[0];
    for (size_t axis = 0; axis < 3; ++axis) to += at[axis] * p.index_strides[axis];
    auto* const out = reinterpret_cast<int64_t*>(address_of(launch.operands[indices_])) + to;
    for (size_t c = 0; c < places.size(); ++c) out[static_cast<int64_t>(c) * positions.strides[1]] = places[c];
  }

  // Pools the window of the result at `at`. `src` is the first element of its line, and `at[2]` steps further.
  void pool_window(const Plane& p, const Position& at, const void* src, void* dst, int64_t channels, int32_t* positions,
                   Window* window) const {
    window->find(p, desc_.attributes.pooling.op, at);
    PoolWindow one{src, window->offsets.data(), static_cast<int64_t>(window->offsets.size()), dst, channels};
    one.divisor = static_cast<double>(window->count);
    one.positions = positions;
    one.places = window->places.data();
    one.place = at[2] * p.stride[2];
    window_(one);
  }

  // The planes of an operand, whose rows are contiguous.
  struct Planes {
    bool regular = false;                         // adjacent planes have the same distance, and rows are contiguous
    int64_t distance = 0, rows = 0, columns = 0;  // strides of planes and of rows; elements of a row
    bool dense = false;                           // rows are adjacent

    explicit Planes(const OperandShape& shape) {
      const int64_t images = shape.dims[0], channels = shape.dims[1];
      const int32_t last = shape.rank - 1;
      columns = shape.dims[last];
      rows = last > 2 ? shape.strides[last - 1] : columns;
      if (last > 2 && shape.dims[last - 1] == 1) rows = columns;
      if (columns != 1 && shape.strides[last] != 1) return;
      if (last > 3 && shape.dims[2] != 1 && shape.strides[2] != rows * shape.dims[3]) return;
      regular = channels == 1 || images == 1 || shape.strides[0] == channels * shape.strides[1];
      distance = channels == 1 ? shape.strides[0] : shape.strides[1];
      dense = rows == columns;
    }
  };

  // How planes are copied side by side: as many as a vector has lanes, for a strip of rows of DST and the rows of SRC
  // that it reads. With three spatial dims, a strip has the rows of one index along the first.
  struct Strips {
    int64_t lanes = 0, rows = 0, count = 0;  // lanes of DST, rows per strip, strips per plane
    int64_t meets = 0;                       // rows of SRC that a row of DST reads; 3 dims: slices of SRC
    int64_t line = 0, most = 0;              // elements of a row of SRC, and of all rows that a strip reads
    bool sliced = false;                     // there are three spatial dims

    // `rows` is 0 if the rows of SRC for one row of DST are too long.
    Strips(const Plane& p, int64_t lanes, int64_t size) : lanes(lanes), line(p.src[2] * lanes) {
      const int64_t room = 128 * 1024 / size;  // elements of SRC that fit in the L2 cache
      sliced = p.src[0] != 1 || p.dst[0] != 1 || p.kernel[0] != 1;
      const int axis = sliced ? 0 : 1;
      meets = (p.kernel[axis] - 1) * p.dilation[axis] + 1;
      if (line * p.src[1] * p.dst[1] == 0) return;
      if (sliced) {
        most = std::min(meets, p.src[0]) * p.src[1] * line;
        if (most > 4 * room) return;
        rows = p.dst[1];
        count = p.dst[0];
        return;
      }
      if (meets > room / line) return;
      rows = std::min(p.dst[1], (room / line - meets) / p.stride[1] + 1);
      count = (p.dst[1] + rows - 1) / rows;
      most = std::min(p.src[1], (rows - 1) * p.stride[1] + meets) * line;
    }
  };

  // A strip: rows [begin, end) of DST at index z along the first of three spatial dims, and the rows [first, last) of
  // SRC that they read.
  struct Strip {
    int64_t z = 0, begin, end, first, last;

    Strip(const Plane& p, const Strips& strips, int64_t number) {
      const int axis = strips.sliced ? 0 : 1;
      z = strips.sliced ? number : 0;
      begin = strips.sliced ? 0 : number * strips.rows;
      end = std::min(p.dst[1], begin + strips.rows);
      const int64_t low = strips.sliced ? z : begin, high = strips.sliced ? z : end - 1;
      const int64_t rows = strips.sliced ? p.src[1] : 1;
      first = std::clamp<int64_t>(low * p.stride[axis] - p.pad[axis], 0, p.src[axis]) * rows;
      last = std::clamp<int64_t>(high * p.stride[axis] - p.pad[axis] + strips.meets, 0, p.src[axis]) * rows;
    }
  };

  // Copies planes side by side and pools them like channels. Returns false if it did nothing.
  bool pool_side_by_side(const ep_launch& launch, const Plane& p, const OperandShape& dst,
                         const OperandShape& src) const {
    const int64_t planes = dst.dims[0] * dst.dims[1];
    const Strips strips(p, planes < kernel_.lanes ? kernel_.fewest_lanes : kernel_.lanes, format_.size);
    const Planes from(src), to(dst), where(indices_ >= 0 ? shape(launch, indices_) : dst);
    if (planes < strips.lanes || strips.rows == 0 || !from.regular || !to.regular || !where.regular) return false;
    const int64_t groups = (planes + strips.lanes - 1) / strips.lanes, all = groups * strips.count;
    const int64_t work = planes * p.dst[0] * p.dst[1] * p.dst[2] * p.kernel[0] * p.kernel[1] * p.kernel[2] / 12;
    parallel(device->threads, work, [&](int32_t part, int32_t parts) {
      std::vector<char> held(static_cast<size_t>(strips.most * format_.size));
      const auto most = static_cast<size_t>(strips.rows * p.dst[2] * strips.lanes);
      std::vector<char> results(most * static_cast<size_t>(format_.size));
      std::vector<int32_t> places(indices_ >= 0 ? 2 * most : 0);
      for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
        const int64_t plane = i / strips.count * strips.lanes, count = std::min(strips.lanes, planes - plane);
        const Strip strip(p, strips, i % strips.count);
        char* const source = element(launch, src_, plane * from.distance);
        move_rows(from, source, strip.first, strip.last, held.data(), strips.lanes, count, true);
        pool_strip(p, strips, strip, held.data() - strip.first * strips.line * format_.size, results.data(),
                   places.data());
        const int64_t row = strip.z * p.dst[1];
        char* const out = element(launch, 0, plane * to.distance);
        move_rows(to, out, row + strip.begin, row + strip.end, results.data(), strips.lanes, count, false);
        if (indices_ < 0) continue;
        const int64_t done = (strip.end - strip.begin) * p.dst[2];
        int32_t* const turned = places.data() + most;
        tile_positions_(turned, done, places.data(), strips.lanes, count, done);
        auto* const positions = reinterpret_cast<int64_t*>(address_of(launch.operands[indices_]));
        for (int64_t k = 0; k < count; ++k) {
          for (int64_t y = strip.begin; y < strip.end; ++y) {
            std::copy_n(turned + k * done + (y - strip.begin) * p.dst[2], p.dst[2],
                        positions + (plane + k) * where.distance + (row + y) * where.rows);
          }
        }
      }
    });
    return true;
  }

  // Copies rows [first, last) of `count` planes from `base` on to lanes of `held`, or back.
  void move_rows(const Planes& planes, char* base, int64_t first, int64_t last, char* held, int64_t lanes,
                 int64_t count, bool to_lanes) const {
    if (first >= last) return;
    const int64_t rows = planes.dense ? 1 : last - first, length = planes.columns * (planes.dense ? last - first : 1);
    for (int64_t i = 0; i < rows; ++i) {
      char* const row = base + (first + i) * planes.rows * format_.size;
      char* const lane = held + i * length * lanes * format_.size;
      if (to_lanes)
        tile_(lane, lanes, row, planes.distance, length, count);
      else
        tile_(row, planes.distance, lane, lanes, count, length);
    }
  }

  // Pools the rows of a strip for planes that are side by side at `src`.
  void pool_strip(const Plane& p, const Strips& strips, const Strip& strip, const char* src, char* result,
                  int32_t* places) const {
    Plane wide = p;
    wide.src_strides[0] = p.src[1] * strips.line;
    wide.src_strides[1] = strips.line;
    wide.src_strides[2] = strips.lanes;
    Window window;
    for (int64_t y = strip.begin; y < strip.end; ++y) {
      for (int64_t x = 0; x < p.dst[2]; ++x, result += strips.lanes * format_.size) {
        const char* const from = src + x * p.stride[2] * strips.lanes * format_.size;
        pool_window(wide, {strip.z, y, x}, from, result, strips.lanes, places, &window);
        if (indices_ >= 0) places += strips.lanes;
      }
    }
  }

  void pool_plane(const ep_launch& launch, Plane p, const Line& shared, const char* from, int64_t n, int64_t c,
                  std::vector<T>* dense, std::vector<T>* row, std::vector<int64_t>* where) const {
    const T* src = reinterpret_cast<const T*>(from);
    const double power = desc_.attributes.pooling.p;
    if (!format_.same || power != 0) {
      const int64_t count = p.src[0] * p.src[1] * p.src[2];
      dense->resize(static_cast<size_t>(count));
      for (int64_t line = 0; line < p.src[0] * p.src[1]; ++line) {
        const int64_t offset = line / p.src[1] * p.src_strides[0] + line % p.src[1] * p.src_strides[1];
        format_.read(dense->data() + line * p.src[2], 1, from + offset * format_.size, p.src_strides[2], p.src[2]);
      }
      if (power != 0) to_powers(dense->data(), count, power);
      p.src_strides[0] = p.src[1] * p.src[2];
      p.src_strides[1] = p.src[2];
      p.src_strides[2] = 1;
      src = dense->data();
    }
    const OperandShape dst = shape(launch, 0);
    for (int64_t line = 0; line < p.dst[0] * p.dst[1]; ++line) {
      const int64_t z = line / p.dst[1];
      const int64_t y = line % p.dst[1];
      pool_row(p, shared, desc_.attributes.pooling.op, src, z, y, row->data(), indices_ < 0 ? nullptr : where->data());
      if (power != 0) to_roots(row->data(), p.dst[2], power);
      const int64_t to = n * dst.strides[0] + c * dst.strides[1] + z * p.dst_strides[0] + y * p.dst_strides[1];
      format_.write(address_of(launch.operands[0]) + to * format_.size, p.dst_strides[2], row->data(), 1, p.dst[2]);
      if (indices_ < 0) continue;
      const OperandShape positions = shape(launch, indices_);
      const int64_t at =
          n * positions.strides[0] + c * positions.strides[1] + z * p.index_strides[0] + y * p.index_strides[1];
      auto* out = reinterpret_cast<int64_t*>(address_of(launch.operands[indices_])) + at;
      for (int64_t x = 0; x < p.dst[2]; ++x) out[x * p.index_strides[2]] = (*where)[static_cast<size_t>(x)];
    }
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  int32_t src_;
  int32_t indices_;
  WindowKernel kernel_;
  WindowFunction window_;
  TileFunction tile_, tile_positions_;
};

// The cost of operands whose elements are not contiguous along rows of the last axis or along channels: it exceeds that
// of copying SRC and DST into rows.
uint64_t penalty_of(const ep_primitive_desc& desc, const ep_operand_desc& src) {
  const ep_operand_desc& dst = desc.operands[0];
  if (is_dynamic(desc)) return 0;
  if (dst.dims[1] > 1 && dst.strides[1] == 1 && src.strides[1] == 1) return 0;
  uint64_t elements = 0;
  for (const ep_operand_desc* operand : {&dst, &src}) {
    const int32_t last = operand->rank - 1;
    if (operand->dims[last] == 1 || operand->strides[last] == 1) continue;
    uint64_t product = 1;
    for (int32_t axis = 0; axis < operand->rank; ++axis) product *= static_cast<uint64_t>(operand->dims[axis]);
    elements += product;
  }
  return elements * static_cast<uint64_t>(dtype_size(src.dtype));
}

}  // namespace

Refusal Pooling::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_pooling_attributes& attributes = desc.attributes.pooling;
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > 3 || src->rank != attributes.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", attributes.spatial_rank, src->rank);
  }
  if (attributes.op < EP_POOLING_MAX || attributes.op > EP_POOLING_LP) return Refusal::because("op %d", attributes.op);
  if ((attributes.op == EP_POOLING_LP) != (attributes.p > 0)) return Refusal::because("a power of %g", attributes.p);
  const bool max = attributes.op == EP_POOLING_MAX;
  if (wide_dtype(src->dtype) == 0 || src->dtype != desc.operands[0].dtype || (!max && !is_floating(src->dtype))) {
    return Refusal::because("pooling %d of %s", attributes.op, dtype_name(src->dtype));
  }
  const ep_operand_desc* indices = operand(desc, EP_ROLE_DST_INDICES);
  if (indices != nullptr && (!max || indices->dtype != EP_DTYPE_i64))
    return Refusal::because("positions of %s", dtype_name(indices->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  info.penalty_bytes = penalty_of(desc, *src);
  return {};
}

Refusal Pooling::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_pooling_attributes& attributes = desc.attributes.pooling;
  if (attributes.op == EP_POOLING_LP && attributes.p != 1 && attributes.p != 2) {
    return Refusal::because("a norm of power %g", attributes.p);
  }
  return why_not(device, desc, info);
}

Refusal Pooling::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  switch (wide_dtype(desc.operands[0].dtype)) {
    case EP_DTYPE_f32: *out = make_primitive<PoolingPrimitive<float>>(device, device, desc); break;
    case EP_DTYPE_f64: *out = make_primitive<PoolingPrimitive<double>>(device, device, desc); break;
    case EP_DTYPE_u64: *out = make_primitive<PoolingPrimitive<uint64_t>>(device, device, desc); break;
    default: *out = make_primitive<PoolingPrimitive<int64_t>>(device, device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
