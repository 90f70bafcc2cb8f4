// scatter: copies SRC, then applies updates by index. Each thread owns some of the positions and reads all indices that
// may address them, so the updates of one position keep their order for any number of threads. Integer additions may be
// reordered: if there are many for few positions, each thread adds into tables of its own. If the indices ascend, each
// thread owns a range of updates and the positions that they address.
//
// Assignment moves bits. Other functions combine in the compute type: in DST itself if that is its type, else in a
// row-major copy in the workspace, which is rounded once at the end.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <vector>

#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/movement/coordinates.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/pick.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

template <int32_t op, class T>
T combined(T x, T update) {
  switch (op) {
    case EP_SCATTER_ADD: return scalar::ep_add(x, update);
    case EP_SCATTER_MUL: return scalar::ep_mul(x, update);
    case EP_SCATTER_MIN: return scalar::ep_min(x, update);
    default: return scalar::ep_max(x, update);
  }
}

// How an update changes a position: one(place, update), or row(place, update, n) for n adjacent positions. Both may
// work on a local copy, a `Place`, until the next update addresses another position. If keeps_last is true, only the
// last update of a position matters.
template <class U>
struct Move {
  using Place = U;
  static constexpr bool keeps_last = true;

  void one(char* place, const char* update) const {
    *reinterpret_cast<U*>(place) = *reinterpret_cast<const U*>(update);
  }
  void row(char* place, const char* update, int64_t n) const {
    copy_bytes(place, update, static_cast<size_t>(n) * sizeof(U));
  }
};

template <int32_t op, class T>
struct Combine {
  static constexpr bool keeps_last = false;
  using Place = T;

  void one(char* place, const char* update) const {
    T& x = *reinterpret_cast<T*>(place);
    x = combined<op>(x, *reinterpret_cast<const T*>(update));
  }
  void row(char* place, const char* update, int64_t n) const {
    T* const x = reinterpret_cast<T*>(place);
    const T* const y = reinterpret_cast<const T*>(update);
    for (int64_t i = 0; i < n; ++i) x[i] = combined<op>(x[i], y[i]);
  }
};

// Updates whose type differs from the type of the positions. Blocks of them are converted together.
template <int32_t op, class T>
struct Convert {
  using Place = T;
  using Converted = Combine<op, T>;
  static constexpr bool keeps_last = false;
  const RowFormat& format;

  void one(char* place, const char* update) const { row(place, update, 1); }
  void row(char* place, const char* update, int64_t n) const {
    constexpr int64_t block = 256;
    T values[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t count = std::min(block, n - i);
      format.read(values, 1, update + i * format.size, 1, count);
      Converted().row(place + i * static_cast<int64_t>(sizeof(T)), reinterpret_cast<const char*>(values), count);
    }
  }
};

// n updates; update i addresses a position within [low, high) of line i. Steps are in bytes; the step of indices is in
// elements.
struct Strip {
  const char* indices;
  int64_t index_step;
  const char* updates;
  int64_t update_step;
  char* places;
  int64_t place_step;  // distance between positions
  int64_t line_step;   // distance between lines; 0: all updates address one line
  int64_t n;
  int64_t length;
  int64_t low, high;
  SimdLevel simd;
};

// Applies updates [first, last), at most longest_span, in order. `dense`: all steps are those of contiguous lists.
// Unless `whole`, first selects the updates within [low, high), so that no branch depends on the position.
template <class Index, class Apply, bool dense, bool whole>
void scatter_span(const Strip strip, int64_t first, int64_t last, BadIndex* bad, const Apply& apply) {
  constexpr int64_t size = sizeof(typename Apply::Place);
  const int64_t index_step = dense ? 1 : strip.index_step;
  const int64_t update_step = dense ? size : strip.update_step;
  const int64_t place_step = dense ? size : strip.place_step;
  const auto* const indices = reinterpret_cast<const Index*>(strip.indices);
  // Captures by value: the compiler would read members again after each store, in case it changed them.
  const auto position_of = [=, length = strip.length](int64_t i) {
    const int64_t given = indices[i * index_step];
    return given + (given >> 63 & length);
  };
  const auto is_outside = [=, length = strip.length](int64_t i, int64_t position) {
    if (static_cast<uint64_t>(position) < static_cast<uint64_t>(length)) return false;
    bad->note(indices[i * index_step], length);
    return true;
  };
  const auto update = [=, places = strip.places, line_step = strip.line_step, updates = strip.updates](
                          int64_t i, int64_t position) {
    char* place = places + position * place_step;
    if (!dense) place += i * line_step;
    apply.one(place, updates + i * update_step);
  };
  if (whole) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t given = indices[i * index_step];
      if (static_cast<uint64_t>(given) < static_cast<uint64_t>(strip.length)) [[likely]] {
        update(i, given);
        continue;
      }
      const int64_t position = position_of(i);
      if (!is_outside(i, position)) update(i, position);
    }
    return;
  }
  Picked mine;
  if (index_step == 1) {
    pick<Index>(strip.simd)(indices + first, last - first, strip.length, strip.low, strip.high, &mine);
    for (int64_t k = 0; k < mine.count && !mine.is_outside; ++k) update(first + mine.numbers[k], mine.positions[k]);
    if (!mine.is_outside) return;
  }
  for (int64_t i = first; i < last; ++i) {
    const int64_t position = position_of(i);
    if (!is_outside(i, position) && position >= strip.low && position < strip.high) update(i, position);
  }
}

// True if all updates of a span address one position. Usually the ends of the span decide.
template <class Index>
bool has_one_place(const Strip& strip, int64_t first, int64_t last) {
  const auto* const indices = reinterpret_cast<const Index*>(strip.indices);
  const Index index = indices[first * strip.index_step];
  if (strip.line_step != 0 || index != indices[(last - 1) * strip.index_step]) return false;
  if (index < 0 || index >= strip.length) return false;
  Index differences = 0;
  for (int64_t i = first; i < last; ++i) differences |= indices[i * strip.index_step] ^ index;
  return differences == 0;
}

// Applies updates [first, last), which all address one position.
template <class Index, class Apply>
void scatter_equals(const Strip& strip, int64_t first, int64_t last, const Apply& apply) {
  const int64_t position = reinterpret_cast<const Index*>(strip.indices)[first * strip.index_step];
  if (position < strip.low || position >= strip.high) return;
  auto* const place = reinterpret_cast<typename Apply::Place*>(strip.places + position * strip.place_step);
  typename Apply::Place value = *place;
  for (int64_t i = Apply::keeps_last ? last - 1 : first; i < last; ++i) {
    apply.one(reinterpret_cast<char*>(&value), strip.updates + i * strip.update_step);
  }
  *place = value;
}

// Consecutive equal positions do not wait for each other's stores.
template <class Index, class Apply>
void scatter_strip(const Strip& strip, BadIndex* bad, const Apply& apply) {
  if constexpr (requires { typename Apply::Converted; }) {
    typename Apply::Place values[longest_span];
    for (int64_t first = 0; first < strip.n; first += longest_span) {
      Strip part = strip;
      part.n = std::min(longest_span, strip.n - first);
      const char* const updates = strip.updates + first * strip.update_step;
      apply.format.read(values, 1, updates, strip.update_step / apply.format.size, part.n);
      part.updates = reinterpret_cast<const char*>(values);
      part.update_step = sizeof(typename Apply::Place);
      part.indices += first * strip.index_step * static_cast<int64_t>(sizeof(Index));
      part.places += first * strip.line_step;
      scatter_strip<Index>(part, bad, typename Apply::Converted());
    }
    return;
  }
  constexpr int64_t size = sizeof(typename Apply::Place);
  const bool whole = strip.low == 0 && strip.high == strip.length;
  const bool dense =
      strip.index_step == 1 && strip.update_step == size && strip.place_step == size && strip.line_step == 0;
  const auto run = !dense  ? whole ? scatter_span<Index, Apply, false, true> : scatter_span<Index, Apply, false, false>
                    : whole ? scatter_span<Index, Apply, true, true>
                           : scatter_span<Index, Apply, true, false>;
  for (int64_t first = 0; first < strip.n;) {
    const int64_t last = std::min(first + longest_span, strip.n);
    if (has_one_place<Index>(strip, first, last)) {
      scatter_equals<Index>(strip, first, last, apply);
    } else {
      run(strip, first, last, bad, apply);
    }
    first = last;
  }
}

// How to copy lines of SRC to DST just before their updates, so that each thread touches the memory only once.
struct LineCopy {
  bool copies = false;
  const char* from = nullptr;
  Axes outer;
  int64_t length = 0;
};

// The updates as [outer, axis, inner], each with axes of its own. For scatter of elements, `axis` runs along the
// updates; outer and inner are lanes that use the same index.
struct Walk {
  Axes outer_updates, outer_indices, outer_dst;
  Axes along_updates, along_indices;
  Axes inner_updates, inner_indices, inner_dst;
  int64_t length = 0;  // length of the axis of DST
  int64_t stride = 0;  // stride of the axis of DST
};

class ScatterPrimitive final : public ep_primitive {
 public:
  ScatterPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        at_(desc.attributes.scatter),
        src_(find_operand(desc, EP_ROLE_SRC)),
        updates_(find_operand(desc, EP_ROLE_SRC_B)),
        indices_(find_operand(desc, EP_ROLE_INDICES)),
        size_(dtype_size(desc.operands[0].dtype)),
        format_(is_floating(desc.operands[0].dtype) ? RowFormat(desc.operands[0].dtype, on.simd)
                                                    : RowFormat::stored(desc.operands[0].dtype)),
        wide_indices_(desc.operands[indices_].dtype == EP_DTYPE_i64),
        moves_(at_.op == EP_SCATTER_ASSIGN),
        staged_(!moves_ && !format_.same) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    return staged_ ? static_cast<uint64_t>(axes_of(shape(shapes, 0), ~0U, true).count() * format_.compute_size) : 0;
  }
  bool has_workspace() const override { return staged_; }

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    const OperandShape dst = shape(launch.shapes, 0);
    OperandShape places = dst;
    int64_t dense[EP_MAX_RANK];
    if (staged_) {
      int64_t step = axes_of(dst, ~0U, true).count();
      for (int32_t k = 0; k < dst.rank; ++k) dense[k] = step /= dst.dims[k];
      places.strides = dense;
      convert(launch, shape(launch.shapes, src_), address_of(launch.operands[src_]), true);
    } else {
      if (scatter_rising(launch, dst)) return EP_STATUS_OK;
      BadIndex bad;
      bool done = false;
      with_apply([&](const auto& apply) { done = scatter_rows(launch, dst, &bad, apply); });
      if (done) return bad.answer(launch, indices_, out_fault);
    }
    const LineCopy lines = staged_ ? LineCopy() : line_copy(launch, dst);
    if (!staged_ && !lines.copies) {
      copy(dst, shape(launch.shapes, src_), address_of(launch.operands[0]), address_of(launch.operands[src_]));
    }
    char* const to = staged_ ? address_of(launch.workspace) : address_of(launch.operands[0]);
    BadIndex bad;
    apply_all(launch, places, lines, &bad, to);
    if (staged_) convert(launch, dst, address_of(launch.operands[0]), false);
    return bad.answer(launch, indices_, out_fault);
  }

 private:
  static constexpr int64_t fewest_lanes = 64;  // with fewer lanes, positions are divided among threads

  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  void copy(const OperandShape& dst, const OperandShape& src, char* to, const char* from) const {
    if (to == from) return;
    StridedCopy copy;
    copy.rank = dst.rank;
    copy.size = size_;
    for (int32_t k = 0; k < dst.rank; ++k) {
      copy.dims[k] = dst.dims[k];
      copy.dst_strides[k] = dst.strides[k];
      copy.src_strides[k] = src.strides[k];
    }
    strided_copy(copy, to, from, device->simd, device->threads);
  }

  // With `reads`, converts an operand into the workspace, in the compute type; otherwise the workspace into the
  // operand.
  void convert(const ep_launch& launch, const OperandShape& given, char* operand, bool reads) const {
    const Axes axes = axes_of(given, ~0U, true);
    const int64_t length = axes.dims[axes.rank - 1];
    const int64_t stride = axes.strides[axes.rank - 1];
    const int64_t lines = axes.count() / length;
    char* const room = address_of(launch.workspace);
    parallel(device->threads, lines * length, [&](int32_t part, int32_t parts) {
      for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
        char* const dense = room + line * length * format_.compute_size;
        char* const at = operand + axes.offset(line * length) * size_;
        if (reads) {
          format_.read(dense, 1, at, stride, length);
        } else {
          format_.write(at, stride, dense, 1, length);
        }
      }
    });
  }

  Walk walk_of(const ep_launch& launch, const OperandShape& places) const {
    const OperandShape updates = shape(launch.shapes, updates_);
    const OperandShape indices = shape(launch.shapes, indices_);
    const bool slices = at_.mode == EP_GATHER_SLICES;
    const int32_t along = slices ? indices.rank : 1;
    Walk walk;
    walk.length = places.dims[at_.axis];
    walk.stride = places.strides[at_.axis];
    for (int32_t k = 0; k < updates.rank; ++k) {
      const bool outer = k < at_.axis;
      const bool inner = k >= at_.axis + along;
      if (!outer && !inner) {
        walk.along_updates.add(updates.dims[k], updates.strides[k]);
        walk.along_indices.add(updates.dims[k], indices.strides[slices ? k - at_.axis : k]);
        continue;
      }
      const int64_t index_stride = slices ? 0 : indices.strides[k];
      const int64_t place_stride = places.strides[outer ? k : k - along + 1];
      (outer ? walk.outer_updates : walk.inner_updates).add(updates.dims[k], updates.strides[k]);
      (outer ? walk.outer_indices : walk.inner_indices).add(updates.dims[k], index_stride);
      (outer ? walk.outer_dst : walk.inner_dst).add(updates.dims[k], place_stride);
    }
    return walk;
  }

  // True if the updates of one index are contiguous, and so are the positions that they address.
  bool moves_rows(const Walk& walk) const {
    return at_.mode == EP_GATHER_SLICES && walk.inner_updates.contiguous() && walk.inner_dst.contiguous();
  }

  // Returns how to copy lines if those of DST and SRC are contiguous and each has updates of its own.
  LineCopy line_copy(const ep_launch& launch, const OperandShape& dst) const {
    LineCopy lines;
    const OperandShape src = shape(launch.shapes, src_);
    lines.from = address_of(launch.operands[src_]);
    if (at_.mode == EP_GATHER_COORDINATES || at_.axis + 1 != dst.rank) return lines;
    if (lines.from == address_of(launch.operands[0]) || src.strides[at_.axis] != 1 || dst.strides[at_.axis] != 1)
      return lines;
    for (int32_t k = 0; k < at_.axis; ++k) lines.outer.add(src.dims[k], src.strides[k]);
    lines.length = src.dims[at_.axis];
    const Walk walk = walk_of(launch, dst);
    const int64_t count = walk.outer_updates.count();
    lines.copies = count >= fewest_lanes && count == lines.outer.count() && walk.inner_updates.count() == 1;
    return lines;
  }

  // Copies SRC and applies one line of updates whose indices ascend according to a sample: each thread applies adjacent
  // updates, and owns the positions from its first update up to the first one of the next thread. Returns false if
  // there is no such line, or if an index is outside its thread's range; DST must then be computed again.
  bool scatter_rising(const ep_launch& launch, const OperandShape& dst) const {
    constexpr int64_t fewest = 1 << 15, samples = 64;
    const char* const from = address_of(launch.operands[src_]);
    if (at_.mode == EP_GATHER_COORDINATES || from == address_of(launch.operands[0])) return false;
    const Walk walk = walk_of(launch, dst);
    const int64_t n = walk.along_updates.count();
    if (n < fewest || walk.outer_updates.count() * walk.inner_updates.count() != 1) return false;
    if (walk.along_updates.rank != 1 || walk.along_updates.strides[0] != 1 || walk.along_indices.strides[0] != 1)
      return false;
    if (walk.stride != 1 || shape(launch.shapes, src_).strides[at_.axis] != 1) return false;
    if (axes_of(dst, ~0U, true).count() != walk.length) return false;
    const char* const indices = address_of(launch.operands[indices_]);
    int64_t before = -1;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t index = index_at(indices, n * i / samples, wide_indices_);
      if (index <= before || index >= walk.length) return false;
      before = index;
    }
    copy(dst, shape(launch.shapes, src_), address_of(launch.operands[0]), from);
    bool done = false;
    with_apply([&](const auto& apply) {
      done = wide_indices_ ? scatter_line(launch, reinterpret_cast<const int64_t*>(indices), n, walk.length, apply)
                           : scatter_line(launch, reinterpret_cast<const int32_t*>(indices), n, walk.length, apply);
    });
    return done;
  }
  template <class Index, class Apply>
  bool scatter_line(const ep_launch& launch, const Index* indices, int64_t n, int64_t length,
                    const Apply& apply) const {
    using Place = typename Apply::Place;
    constexpr int64_t longest_group = 4096;
    const char* const updates = address_of(launch.operands[updates_]);
    char* const to = address_of(launch.operands[0]);
    // Equal indices belong to one thread. Returns -1 if too many are equal.
    const auto first_of = [&](int64_t i) {
      const int64_t least = std::max<int64_t>(i - longest_group, 0);
      while (i > least && i < n && indices[i - 1] == indices[i]) --i;
      return i > 0 && i == least ? -1 : i;
    };
    std::atomic<bool> fits{true};
    parallel(device->threads, 2 * n, [&](int32_t part, int32_t parts) {
      const int64_t begin = first_of(n * part / parts), end = first_of(n * (part + 1) / parts);
      if (begin < 0 || end < 0) fits = false;
      if (!fits || begin >= end) return;
      const int64_t low = begin == 0 ? 0 : int64_t{indices[begin]};
      const int64_t high = end == n ? length : int64_t{indices[end]};
      if (low < 0 || high > length || low > high) fits = false;
      if (!fits) return;
      const auto width = static_cast<uint64_t>(high - low);
      char* const places = to + low * int64_t{sizeof(Place)};
      for (int64_t i = begin; i < end; ++i) {
        const auto position = static_cast<uint64_t>(int64_t{indices[i]} - low);
        if (position >= width) {
          fits = false;
          return;
        }
        apply.one(places + position * sizeof(Place), updates + i * int64_t{sizeof(Place)});
      }
    });
    return fits;
  }

  // Applies every update, keeping the order per position. Elements of `to` have `place_size` bytes.
  template <class Apply>
  void scatter(const ep_launch& launch, const OperandShape& places, const LineCopy& lines, BadIndex* bad,
               const Apply& apply, char* to, int64_t place_size) const {
    if (at_.mode == EP_GATHER_COORDINATES) return by_coordinates(launch, places, bad, apply, to, place_size);
    const Walk walk = walk_of(launch, places);
    const int64_t outer = walk.outer_updates.count();
    const int64_t along = walk.along_updates.count();
    const int64_t inner = walk.inner_updates.count();
    // Threads divide the lanes if there are many (of rows, several lanes per part); otherwise each thread gets a range
    // of positions.
    const int64_t lanes = outer * inner;
    const bool by_lane = lanes >= fewest_lanes;
    const bool rows = inner > 1 && moves_rows(walk);
    const int64_t width = rows ? std::clamp<int64_t>(lanes / (2 * device->threads), 16, 256) : 1;
    const bool picks = inner == 1 && walk.along_updates.rank == 1 && walk.along_indices.strides[0] == 1;
    const int64_t ranges = picks || device->threads >= 4 ? device->threads : 1;
    const int64_t pieces = by_lane ? (lanes + width - 1) / width : ranges;
    const int64_t quarters = rows ? 2 : 16;  // quarters of a nanosecond per element
    parallel(device->threads, lanes * along * quarters / 4, [&](int32_t part, int32_t parts) {
      const int64_t first = pieces * part / parts;
      const int64_t last = pieces * (part + 1) / parts;
      if (first >= last) return;
      const int64_t first_lane = by_lane ? first * width : 0;
      const int64_t last_lane = by_lane ? std::min(last * width, lanes) : lanes;
      Range range;
      range.low = by_lane ? 0 : walk.length * first / pieces;
      range.high = by_lane ? walk.length : walk.length * last / pieces;
      for (int64_t o = first_lane / inner; o * inner < last_lane; ++o) {
        range.begin = std::max(first_lane - o * inner, int64_t{0});
        range.end = std::min(last_lane - o * inner, inner);
        const char* const from = address_of(launch.operands[updates_]) + walk.outer_updates.offset(o) * size_;
        char* const line = to + walk.outer_dst.offset(o) * place_size;
        if (lines.copies) {
          copy_bytes(line, lines.from + lines.outer.offset(o) * size_, static_cast<size_t>(lines.length * size_));
        }
        scatter_lanes(launch, walk, range, walk.outer_indices.offset(o), from, bad, apply, line, place_size);
      }
    });
  }

  // Applies rows of updates to rows of DST. Each thread owns adjacent rows, and copies them from SRC just before. A
  // sample of the indices determines the ranges, so that each has about as many updates. Returns false if there are few
  // rows, the rows are short, or a few of them have most updates; several threads then share each row.
  template <class Apply>
  bool scatter_rows(const ep_launch& launch, const OperandShape& dst, BadIndex* bad, const Apply& apply) const {
    constexpr int64_t shortest = 256, samples = 64, ranges_of_thread = 4;  // bytes of a row
    const OperandShape src = shape(launch.shapes, src_);
    const Walk walk = walk_of(launch, dst);
    const int64_t n = walk.along_updates.count(), length = walk.inner_updates.count();
    const int64_t ranges = ranges_of_thread * device->threads;
    if (at_.mode != EP_GATHER_SLICES || device->threads == 1 || walk.along_updates.rank != 1) return false;
    if (walk.outer_updates.count() != 1 || !moves_rows(walk) || walk.stride != length) return false;
    if (!axes_of(src, ~0U, true).contiguous() || !axes_of(dst, ~0U, true).contiguous()) return false;
    if (length * size_ < shortest || n < samples || ranges > samples / 2 || walk.length < ranges) return false;
    const char* const indices = address_of(launch.operands[indices_]);
    const auto index = [&](int64_t i) { return index_at(indices, i * walk.along_indices.strides[0], wide_indices_); };
    int64_t sample[samples];
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t given = index(n * i / samples);
      sample[i] = std::clamp<int64_t>(given < 0 ? given + walk.length : given, 0, walk.length - 1);
    }
    std::sort(sample, sample + samples);
    const auto low_of = [&](int64_t range) {
      return range == 0 ? 0 : range == ranges ? walk.length : sample[samples * range / ranges];
    };
    for (int64_t range = 1; range < ranges; ++range) {
      if (low_of(range) == low_of(range - 1) && range > 1) return false;
    }
    const char* const updates = address_of(launch.operands[updates_]);
    const char* const from = address_of(launch.operands[src_]);
    char* const to = address_of(launch.operands[0]);
    const int64_t row = length * size_;
    parallel(device->threads, (n + walk.length) * row / 16, [&](int32_t part, int32_t parts) {
      const int64_t low = low_of(ranges * part / parts), high = low_of(ranges * (part + 1) / parts);
      if (low >= high) return;
      if (to != from) copy_bytes(to + low * row, from + low * row, static_cast<size_t>((high - low) * row));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t position = resolve_index(index(i), walk.length, bad);
        if (position >= low && position < high)
          apply.row(to + position * row, updates + walk.along_updates.offset(i) * size_, length);
      }
    });
    return true;
  }

  // Adds integers to one line of few positions; returns false for other updates. Adjacent updates go to different
  // tables, so that equal ones do not wait for each other.
  template <class T>
  bool add_in_tables(const ep_launch& launch, const OperandShape& places, BadIndex* bad, char* to) const {
    constexpr int64_t most_places = 1024, tables = 4;
    if (at_.mode == EP_GATHER_COORDINATES) return false;
    const Walk walk = walk_of(launch, places);
    const int64_t n = walk.along_updates.count();
    if (walk.length > most_places || n < 16 * walk.length || n < (1 << 15)) return false;
    if (walk.outer_updates.count() * walk.inner_updates.count() != 1 || walk.along_updates.rank != 1) return false;
    std::vector<T> sums(static_cast<size_t>(device->threads * tables * walk.length));
    parallel(device->threads, n, [&](int32_t part, int32_t parts) {
      T* const mine = sums.data() + runner() * tables * walk.length;
      const char* const indices = address_of(launch.operands[indices_]);
      const T* const updates = reinterpret_cast<const T*>(address_of(launch.operands[updates_]));
      const auto add = [&](int64_t i, int64_t table) {
        const int64_t position =
            resolve_index(index_at(indices, i * walk.along_indices.strides[0], wide_indices_), walk.length, bad);
        if (position >= 0)
          mine[table * walk.length + position] = combined<EP_SCATTER_ADD>(mine[table * walk.length + position],
                                                                          updates[i * walk.along_updates.strides[0]]);
      };
      int64_t i = n * part / parts;
      const int64_t end = n * (part + 1) / parts;
      for (; i + tables <= end; i += tables) {
        for (int64_t table = 0; table < tables; ++table) add(i + table, table);
      }
      for (; i < end; ++i) add(i, 0);
    });
    T* const place = reinterpret_cast<T*>(to);
    for (int64_t table = 0; table < device->threads * tables; ++table) {
      for (int64_t k = 0; k < walk.length; ++k) {
        T& sum = place[k * walk.stride];
        sum = combined<EP_SCATTER_ADD>(sum, sums[static_cast<size_t>(table * walk.length + k)]);
      }
    }
    return true;
  }

  // Lanes [begin, end) of one outer index, and positions [low, high) of each.
  struct Range {
    int64_t begin, end, low, high;
  };
  template <class Apply>
  void scatter_lanes(const ep_launch& launch, const Walk& walk, const Range& range, int64_t first_index,
                     const char* from, BadIndex* bad, const Apply& apply, char* base, int64_t place_size) const {
    const char* const indices = address_of(launch.operands[indices_]);
    const int64_t along = walk.along_updates.count();
    const bool slices = at_.mode == EP_GATHER_SLICES;
    const bool rows = moves_rows(walk);
    const bool lists = walk.along_updates.rank == 1;
    const auto resolve = [&](int64_t at) {
      return resolve_index(index_at(indices, at, wide_indices_), walk.length, bad);
    };
    const auto within = [&](int64_t position) { return position >= range.low && position < range.high; };
    const int64_t index_size = wide_indices_ ? 8 : 4;
    Strip strip{};
    strip.place_step = walk.stride * place_size;
    strip.length = walk.length;
    strip.low = range.low;
    strip.high = range.high;
    strip.simd = device->simd;
    if (lists && range.end - range.begin == 1 && walk.inner_updates.count() == 1) {
      strip.indices = indices + first_index * index_size;
      strip.index_step = walk.along_indices.strides[0];
      strip.updates = from;
      strip.update_step = walk.along_updates.strides[0] * size_;
      strip.places = base;
      strip.n = along;
      return scatter_strip_of(strip, bad, apply);
    }
    for (int64_t a = 0; a < along; ++a) {
      const int64_t index_offset = first_index + walk.along_indices.offset(a);
      const char* const line = from + walk.along_updates.offset(a) * size_;
      int64_t position = slices ? resolve(index_offset) : 0;
      if (slices && !within(position)) continue;
      if (rows) {
        apply.row(base + (position * walk.stride + range.begin) * place_size, line + range.begin * size_,
                  range.end - range.begin);
        continue;
      }
      if (!slices && walk.inner_updates.rank == 1) {
        strip.index_step = walk.inner_indices.strides[0];
        strip.indices = indices + (index_offset + range.begin * strip.index_step) * index_size;
        strip.update_step = walk.inner_updates.strides[0] * size_;
        strip.updates = line + range.begin * strip.update_step;
        strip.line_step = walk.inner_dst.strides[0] * place_size;
        strip.places = base + range.begin * strip.line_step;
        strip.n = range.end - range.begin;
        scatter_strip_of(strip, bad, apply);
        continue;
      }
      for (int64_t i = range.begin; i < range.end; ++i) {
        if (!slices) {
          position = resolve(index_offset + walk.inner_indices.offset(i));
          if (!within(position)) continue;
        }
        apply.one(base + (position * walk.stride + walk.inner_dst.offset(i)) * place_size,
                  line + walk.inner_updates.offset(i) * size_);
      }
    }
  }
  template <class Apply>
  void scatter_strip_of(const Strip& strip, BadIndex* bad, const Apply& apply) const {
    if (wide_indices_) return scatter_strip<int64_t>(strip, bad, apply);
    scatter_strip<int32_t>(strip, bad, apply);
  }

  // Applies updates by coordinates. Threads divide the lanes if there are many, else ranges of the first coordinate.
  template <class Apply>
  void by_coordinates(const ep_launch& launch, const OperandShape& whole, BadIndex* bad, const Apply& apply, char* to,
                      int64_t place_size) const {
    const OperandShape updates = shape(launch.shapes, updates_);
    const OperandShape indices = shape(launch.shapes, indices_);
    const Coordinates named(whole, indices, at_.axis);
    const Axes outer = axes_before(updates, indices.rank - 1);
    const Axes inner_updates = axes_from(updates, indices.rank - 1);
    const Axes inner_dst = axes_from(whole, whole.rank - inner_updates.rank);
    const bool rows = inner_updates.contiguous() && inner_dst.contiguous();
    const int64_t inner = inner_updates.count();
    const bool by_lane = inner >= 64;
    const char* const from = address_of(launch.operands[updates_]);
    const char* const index_base = address_of(launch.operands[indices_]);
    const int64_t count = named.places();
    parallel(device->threads, count * (10 + inner), [&](int32_t part, int32_t parts) {
      const int64_t begin = by_lane ? inner * part / parts : 0;
      const int64_t end = by_lane ? inner * (part + 1) / parts : inner;
      const int64_t pieces = device->threads;
      const int64_t low = by_lane ? 0 : named.first_length() * (pieces * part / parts) / pieces;
      const int64_t high =
          by_lane ? named.first_length() : named.first_length() * (pieces * (part + 1) / parts) / pieces;
      if (low >= high) return;
      for (int64_t i = 0; i < count; ++i) {
        int64_t first = 0;
        const int64_t offset = named.offset(index_base, wide_indices_, i, bad, &first);
        if (offset < 0 || first < low || first >= high) continue;
        char* const place = to + offset * place_size;
        const char* const line = from + outer.offset(i) * size_;
        if (rows) {
          apply.row(place + begin * place_size, line + begin * size_, end - begin);
          continue;
        }
        for (int64_t j = begin; j < end; ++j) {
          apply.one(place + inner_dst.offset(j) * place_size, line + inner_updates.offset(j) * size_);
        }
      }
    });
  }

  void apply_all(const ep_launch& launch, const OperandShape& places, const LineCopy& lines, BadIndex* bad,
                 char* to) const {
    with_apply([&](const auto& apply) {
      using Place = typename std::decay_t<decltype(apply)>::Place;
      if constexpr (std::is_same_v<std::decay_t<decltype(apply)>, Combine<EP_SCATTER_ADD, Place>> &&
                    std::is_integral_v<Place>) {
        if (add_in_tables<Place>(launch, places, bad, to)) return;
      }
      scatter(launch, places, lines, bad, apply, to, sizeof(Place));
    });
  }

  // Calls visit(apply) with the function that changes a position.
  template <class Visit>
  void with_apply(const Visit& visit) const {
    if (!moves_) return with_combine(visit);
    switch (size_) {
      case 1: return visit(Move<uint8_t>());
      case 2: return visit(Move<uint16_t>());
      case 4: return visit(Move<uint32_t>());
      default: return visit(Move<uint64_t>());
    }
  }
  template <class Visit>
  void with_combine(const Visit& visit) const {
    switch (format_.compute) {
      case EP_DTYPE_f32: return with_op<float>(visit);
      case EP_DTYPE_f64: return with_op<double>(visit);
      case EP_DTYPE_i8: return with_op<int8_t>(visit);
      case EP_DTYPE_i16: return with_op<int16_t>(visit);
      case EP_DTYPE_i32: return with_op<int32_t>(visit);
      case EP_DTYPE_u8: return with_op<uint8_t>(visit);
      case EP_DTYPE_u16: return with_op<uint16_t>(visit);
      case EP_DTYPE_u32: return with_op<uint32_t>(visit);
      case EP_DTYPE_u64: return with_op<uint64_t>(visit);
      default: return with_op<int64_t>(visit);
    }
  }
  template <class T, class Visit>
  void with_op(const Visit& visit) const {
    switch (at_.op) {
      case EP_SCATTER_ADD: return with_format<EP_SCATTER_ADD, T>(visit);
      case EP_SCATTER_MUL: return with_format<EP_SCATTER_MUL, T>(visit);
      case EP_SCATTER_MIN: return with_format<EP_SCATTER_MIN, T>(visit);
      default: return with_format<EP_SCATTER_MAX, T>(visit);
    }
  }
  template <int32_t op, class T, class Visit>
  void with_format(const Visit& visit) const {
    if constexpr (std::is_same_v<T, float>) {  // the only type in which others are combined
      if (!format_.same) return visit(Convert<op, T>{format_});
    }
    visit(Combine<op, T>());
  }

  ep_primitive_desc desc_;
  ep_scatter_attributes at_;
  int32_t src_, updates_, indices_;
  int32_t size_;
  RowFormat format_;
  bool wide_indices_;
  bool moves_;   // true: assignment
  bool staged_;  // true: combines in the workspace
};

}  // namespace

Refusal Scatter::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* updates = operand(desc, EP_ROLE_SRC_B);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  const ep_scatter_attributes& at = desc.attributes.scatter;
  if (desc.operand_count != 4 || desc.operands[0].role != EP_ROLE_DST || src == nullptr || updates == nullptr ||
      indices == nullptr) {
    return Refusal::because("its operands are not DST, SRC, SRC_B and INDICES");
  }
  if (indices->dtype != EP_DTYPE_i32 && indices->dtype != EP_DTYPE_i64)
    return Refusal::because("indices of %s", dtype_name(indices->dtype));
  const int32_t dtype = desc.operands[0].dtype;
  if (dtype_size(dtype) == 0 || src->dtype != dtype || updates->dtype != dtype)
    return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (at.op < EP_SCATTER_ASSIGN || at.op > EP_SCATTER_MAX) return Refusal::because("op %d", at.op);
  if (at.op != EP_SCATTER_ASSIGN && (dtype == EP_DTYPE_bool || wide_dtype(dtype) == 0))
    return Refusal::because("op %d on %s", at.op, dtype_name(dtype));
  if (at.axis < 0 || at.axis >= src->rank) return Refusal::because("axis %d of rank %d", at.axis, src->rank);
  if (at.mode == EP_GATHER_COORDINATES) {
    if (Refusal refusal = why_no_coordinates(*src, *indices, *updates, at.axis)) return refusal;
    if (desc.operands[0].rank != src->rank) return Refusal::because("a result of rank %d", desc.operands[0].rank);
    info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
    return {};
  }
  if (at.mode != EP_GATHER_SLICES && at.mode != EP_GATHER_ELEMENTS) return Refusal::because("mode %d", at.mode);
  const int32_t rank = at.mode == EP_GATHER_SLICES ? src->rank - 1 + indices->rank : src->rank;
  if (updates->rank != rank || desc.operands[0].rank != src->rank ||
      (at.mode == EP_GATHER_ELEMENTS && indices->rank != rank)) {
    return Refusal::because("updates of rank %d, not %d", updates->rank, rank);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Scatter::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<ScatterPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
