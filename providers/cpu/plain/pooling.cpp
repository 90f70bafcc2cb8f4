// pooling: maximum (with or without positions), average and norms, with 1 to 3 spatial dims.
//
// The loop pools one row of the result at a time: each tap of the window is added to, or compared with, all results of
// the row that it affects. So the inner loop runs over adjacent results. If channels are innermost, it runs over
// channels instead. f32 planes are copied side by side, so that they are like channels, a strip of rows at a time. The
// order of taps is always the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "providers/cpu/movement/tile.h"
#include "providers/cpu/plain/plain.h"
#include "providers/cpu/plain/plane.h"
#include "providers/cpu/plain/window.h"
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
  int64_t count = 1;             // divisor of a sum
  bool whole = false;            // all taps lie within the line

  void find(const Plane& p, int32_t op, const Position& at) {
    const int64_t left = at[2] * p.stride[2] - p.pad[2];
    const bool inside = left >= 0 && left + (p.kernel[2] - 1) * p.dilation[2] < p.src[2];
    if (inside && whole && at[2] != 0) return;
    whole = inside;
    offsets.clear();
    const TapRange taps[3] = {taps_at(p, 0, at[0]), taps_at(p, 1, at[1]), taps_at(p, 2, at[2])};
    for (int64_t kz = taps[0].first; kz < taps[0].last; ++kz) {
      const int64_t z = (at[0] * p.stride[0] - p.pad[0] + kz * p.dilation[0]) * p.src_strides[0];
      for (int64_t ky = taps[1].first; ky < taps[1].last; ++ky) {
        const int64_t y = (at[1] * p.stride[1] - p.pad[1] + ky * p.dilation[1]) * p.src_strides[1];
        for (int64_t kx = taps[2].first; kx < taps[2].last; ++kx) {
          offsets.push_back(z + y + (kx * p.dilation[2] - p.pad[2]) * p.src_strides[2]);
        }
      }
    }
    if (op != EP_POOLING_MAX) count = window_size(p, op, at);
  }
};

// Pools one result with taps at `offsets`, for `channels` adjacent planes.
template <class T>
void pool_channels(int32_t op, T count, const T* src, const std::vector<int64_t>& offsets, T* result,
                   int64_t channels) {
  std::fill_n(result, channels, op == EP_POOLING_MAX ? lowest<T>() : T{0});
  for (int64_t offset : offsets) {
    op == EP_POOLING_MAX ? max_tap(result, src + offset, 1, channels) : add_tap(result, src + offset, 1, channels);
  }
  if (op == EP_POOLING_MAX) return;
  for (int64_t c = 0; c < channels; ++c) result[c] = static_cast<T>(result[c] / count);
}

// True if the channels of DST and SRC are adjacent in memory, and pool_channels computes in their type.
bool has_channels_innermost(const RowFormat& format, const OperandShape& dst, const OperandShape& src, bool positions) {
  return format.same && !positions && dst.dims[1] > 1 && dst.strides[1] == 1 && src.strides[1] == 1;
}

template <class T>
class PoolingPrimitive final : public ep_primitive {
 public:
  PoolingPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        window_(window_kernel(on.simd)),
        tile_(tile_function(on.simd, sizeof(T))),
        format_(desc.operands[0].dtype, on.simd),
        src_(find_operand(desc, EP_ROLE_SRC)),
        indices_(find_operand(desc, EP_ROLE_DST_INDICES)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch, 0);
    const OperandShape src = shape(launch, src_);
    const Plane plane(desc_.attributes.pooling, src, dst, indices_ >= 0 ? shape(launch, indices_).strides : nullptr);
    const int64_t planes = dst.dims[0] * dst.dims[1];
    const int64_t taps = plane.kernel[0] * plane.kernel[1] * plane.kernel[2];
    const int64_t results = plane.dst[0] * plane.dst[1] * plane.dst[2];
    const bool powers = desc_.attributes.pooling.op == EP_POOLING_LP;
    if (!powers && has_channels_innermost(format_, dst, src, indices_ >= 0)) {
      const int64_t images = dst.dims[0] * results;
      parallel(device->threads, planes * results * taps / 2, [&](int32_t part, int32_t parts) {
        Window window;
        for (int64_t i = images * part / parts; i < images * (part + 1) / parts; ++i) {
          pool_position(launch, plane, dst, src, i / results, i % results, &window);
        }
      });
      return EP_STATUS_OK;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (!powers && pool_side_by_side(launch, plane, dst, src)) return EP_STATUS_OK;
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

  // Pools result `i` of every channel of image `n`.
  void pool_position(const ep_launch& launch, const Plane& p, const OperandShape& dst, const OperandShape& src,
                     int64_t n, int64_t i, Window* window) const {
    const Position at = {i / p.dst[2] / p.dst[1], i / p.dst[2] % p.dst[1], i % p.dst[2]};
    const auto* from = reinterpret_cast<const T*>(address_of(launch.operands[src_])) + n * src.strides[0] +
                       at[2] * p.stride[2] * p.src_strides[2];
    auto* to = reinterpret_cast<T*>(address_of(launch.operands[0])) + n * dst.strides[0] + at[0] * p.dst_strides[0] +
               at[1] * p.dst_strides[1] + at[2] * p.dst_strides[2];
    const int32_t op = desc_.attributes.pooling.op;
    window->find(p, op, at);
    const T count = static_cast<T>(window->count);
    if constexpr (std::is_same_v<T, float>) {
      if (dst.dims[1] >= window_.lanes) {
        const auto taps = static_cast<int64_t>(window->offsets.size());
        return window_.run({from, window->offsets.data(), taps, to, dst.dims[1], op != EP_POOLING_MAX, count});
      }
    }
    pool_channels(op, count, from, window->offsets, to, dst.dims[1]);
  }

  // The planes of an operand, each row-major.
  struct Planes {
    void* base = nullptr;
    int64_t distance = 0;  // between adjacent planes, in elements; 0: it varies, or planes are not row-major

    Planes(const ep_launch& launch, int32_t number, const OperandShape& shape) {
      base = address_of(launch.operands[number]);
      const int64_t images = shape.dims[0], channels = shape.dims[1];
      int64_t step = 1;
      for (int32_t axis = shape.rank - 1; axis > 1; step *= shape.dims[axis--]) {
        if (shape.dims[axis] != 1 && shape.strides[axis] != step) return;
      }
      if (channels == 1)
        distance = shape.strides[0];
      else if (images == 1 || shape.strides[0] == channels * shape.strides[1])
        distance = shape.strides[1];
    }
  };

  // How planes are copied side by side: as many as a vector has lanes, for a strip of rows of DST and the rows of SRC
  // that it reads.
  struct Strips {
    int64_t lanes = 0, rows = 0, count = 0;  // lanes of DST, rows per strip, strips per plane
    int64_t meets = 0;                       // rows of SRC that a row of DST reads
    int64_t line = 0, most = 0;              // elements of a row of SRC, and of all rows that a strip reads

    // `rows` is 0 if the rows of SRC for one row of DST are too long.
    Strips(const Plane& p, int64_t lanes) : lanes(lanes), line(p.src[2] * lanes) {
      constexpr int64_t room = 32768;  // elements of SRC that fit in the L2 cache
      meets = (p.kernel[1] - 1) * p.dilation[1] + 1;
      if (p.src[0] != 1 || p.dst[0] != 1 || p.kernel[0] != 1 || line * p.dst[1] == 0 || meets > room / line) return;
      rows = std::min(p.dst[1], (room / line - meets) / p.stride[1] + 1);
      count = (p.dst[1] + rows - 1) / rows;
      most = std::min(p.src[1], (rows - 1) * p.stride[1] + meets) * line;
    }
  };

  // Copies planes side by side and pools them like channels. Returns false if it did nothing.
  bool pool_side_by_side(const ep_launch& launch, const Plane& p, const OperandShape& dst,
                         const OperandShape& src) const {
    const int64_t planes = dst.dims[0] * dst.dims[1];
    const Strips strips(p, window_.lanes);
    const Planes from(launch, src_, src), to(launch, 0, dst);
    if (!format_.same || planes < strips.lanes || strips.rows == 0 || from.distance == 0 || to.distance == 0)
      return false;
    std::optional<Planes> where;
    if (indices_ >= 0) where.emplace(launch, indices_, shape(launch, indices_));
    if (where && (where->distance == 0 || p.src[1] * p.src[2] > INT32_MAX)) return false;
    const int64_t groups = (planes + strips.lanes - 1) / strips.lanes, all = groups * strips.count;
    const int64_t work = planes * p.dst[1] * p.dst[2] * p.kernel[1] * p.kernel[2] / 12;
    parallel(device->threads, work, [&](int32_t part, int32_t parts) {
      std::vector<T> held(static_cast<size_t>(strips.most));
      std::vector<T> results(static_cast<size_t>(strips.rows * p.dst[2] * strips.lanes));
      std::vector<int32_t> places(where ? 2 * results.size() : 0);
      for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
        const int64_t plane = i / strips.count * strips.lanes, count = std::min(strips.lanes, planes - plane);
        const int64_t begin = i % strips.count * strips.rows, end = std::min(p.dst[1], begin + strips.rows);
        const int64_t first = std::clamp<int64_t>(begin * p.stride[1] - p.pad[1], 0, p.src[1]);
        const int64_t last = std::min(p.src[1], (end - 1) * p.stride[1] - p.pad[1] + strips.meets);
        const auto* const rows = static_cast<const T*>(from.base) + plane * from.distance + first * p.src[2];
        if (first < last) tile_(held.data(), strips.lanes, rows, from.distance, (last - first) * p.src[2], count);
        pool_strip(p, strips, begin, end, held.data() - first * strips.line, results.data(),
                   where ? places.data() : nullptr);
        const int64_t done = (end - begin) * p.dst[2], offset = begin * p.dst[2];
        T* const out = static_cast<T*>(to.base) + plane * to.distance + offset;
        tile_(out, to.distance, results.data(), strips.lanes, count, done);
        if (!where) continue;
        int32_t* const turned = places.data() + results.size();
        tile_(turned, done, places.data(), strips.lanes, count, done);
        for (int64_t k = 0; k < count; ++k) {
          auto* const position = static_cast<int64_t*>(where->base) + (plane + k) * where->distance + offset;
          std::copy_n(turned + k * done, done, position);
        }
      }
    });
    return true;
  }

  // Pools rows [begin, end) of DST for planes that are side by side at `src`.
  void pool_strip(const Plane& p, const Strips& strips, int64_t begin, int64_t end, const T* src, T* result,
                  int32_t* place) const {
    const int32_t op = desc_.attributes.pooling.op;
    Plane wide = p;
    wide.src_strides[1] = strips.line;
    wide.src_strides[2] = strips.lanes;
    Window window;
    for (int64_t y = begin; y < end; ++y) {
      for (int64_t x = 0; x < p.dst[2]; ++x, result += strips.lanes) {
        window.find(wide, op, {0, y, x});
        const auto taps = static_cast<int64_t>(window.offsets.size());
        window_.run({src + x * p.stride[2] * strips.lanes, window.offsets.data(), taps, result, strips.lanes,
                     op != EP_POOLING_MAX, static_cast<T>(window.count), place, x * p.stride[2]});
        if (place != nullptr) place += strips.lanes;
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
  WindowKernel window_;
  TileFunction tile_;
  RowFormat format_;
  int32_t src_;
  int32_t indices_;
};

// The cost of operands whose elements are not contiguous along rows of the last axis or along channels: it exceeds that
// of copying SRC and DST into rows.
uint64_t penalty_of(const ep_primitive_desc& desc, const ep_operand_desc& src) {
  const ep_operand_desc& dst = desc.operands[0];
  const bool positions = operand(desc, EP_ROLE_DST_INDICES) != nullptr;
  if (is_dynamic(desc)) return 0;
  if (has_channels_innermost(RowFormat(dst.dtype), shape_of(dst, nullptr, 0), shape_of(src, nullptr, 0), positions)) {
    return 0;
  }
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
  if (desc.operands[0].dtype != EP_DTYPE_f32)
    return Refusal::because("%s is converted before it is pooled", dtype_name(desc.operands[0].dtype));
  if (desc.attributes.pooling.op == EP_POOLING_LP) return Refusal::because("a norm is requested");
  if (operand(desc, EP_ROLE_DST_INDICES) != nullptr) return Refusal::because("positions are requested");
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
