// scatter: copies SRC, then applies updates by index. Each thread owns some of the positions and reads all indices that
// may address them, so the updates of one position keep their order for any number of threads. Integer additions may be
// reordered: if there are many for few positions, each thread adds into tables of its own. If the indices ascend, each
// thread owns a range of updates and the positions that they address.
//
// Updates are applied in spans: a span has a list of positions and a list of updates in the type of the positions, each
// in place or in a buffer. apply.h has the only functions that know the op and the type.
//
// Assignment moves bits. Other functions combine in the compute type: in DST itself if that is its type, else in a
// row-major copy in the workspace, which is rounded once at the end.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "providers/cpu/movement/apply.h"
#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/movement/coordinates.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/pick.h"
#include "providers/cpu/movement/shared_axes.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The updates as [outer, along, inner]. `along` are the axes of INDICES for scatter of slices, else the axis of DST.
struct Walk {
  SharedAxes outer, along, inner;
  int64_t length = 0;  // length of the axis of DST
  int64_t stride = 0;  // stride of the axis of DST

  // True if the updates of one index are contiguous, and so are the positions that they address.
  bool has_rows() const {
    const Steps steps = inner.last_steps();
    return inner.rank == 0 || (inner.rank == 1 && steps.taken == 1 && steps.whole == 1);
  }
};

// Positions [low, high) of an axis.
struct Range {
  int64_t low, high;
};

// n updates. Steps are in elements.
struct Strip {
  const char* indices;
  const char* updates;
  char* places;
  int64_t index_step, update_step;
  int64_t place_stride;  // step between positions
  int64_t n;
  int64_t span;          // updates that are applied together, at most longest_span
  int64_t span_step;     // step from the positions of a span to those of the next one
  const int64_t* lines;  // the first positions of the lines that the updates of a span address; NULL: one line
};

// Memory for one span.
struct Buffers {
  Picked picked;
  alignas(8) char elements[longest_span * 8];  // updates as they are stored
  alignas(8) char values[longest_span * 8];    // updates in the type of the positions
};

// row[i] = from[numbers[i] * step]
template <class T>
void select(char* row, const char* from, int64_t step, const int64_t* numbers, int64_t n) {
  T* const out = reinterpret_cast<T*>(row);
  const T* const in = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) out[i] = in[numbers[i] * step];
}
using Select = void (*)(char* row, const char* from, int64_t step, const int64_t* numbers, int64_t n);
Select select_of_size(int32_t size) {
  switch (size) {
    case 1: return select<uint8_t>;
    case 2: return select<uint16_t>;
    case 4: return select<uint32_t>;
    default: return select<uint64_t>;
  }
}

// True if all positions are within [0, length).
bool are_within(const int64_t* positions, int64_t n, int64_t length) {
  int64_t signs = 0;
  for (int64_t i = 0; i < n; ++i) signs |= positions[i] | (length - 1 - positions[i]);
  return signs >= 0;
}

class ScatterPrimitive final : public ep_primitive {
 public:
  ScatterPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        at_(desc.attributes.scatter),
        src_(find_operand(desc, EP_ROLE_SRC)),
        updates_(find_operand(desc, EP_ROLE_SRC_B)),
        indices_(find_operand(desc, EP_ROLE_INDICES)),
        size_(dtype_size(desc.operands[0].dtype)),
        format_(at_.op != EP_SCATTER_ASSIGN && is_floating(desc.operands[0].dtype)
                    ? RowFormat(desc.operands[0].dtype, on.simd)
                    : RowFormat::stored(desc.operands[0].dtype)),
        place_size_(format_.compute_size),
        wide_indices_(desc.operands[indices_].dtype == EP_DTYPE_i64),
        staged_(!format_.same),
        apply_(apply_of(at_.op, format_.compute)),
        select_(select_of_size(size_)),
        pick_wide_(pick<int64_t>(on.simd)),
        pick_narrow_(pick<int32_t>(on.simd)) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    return staged_ ? static_cast<uint64_t>(axes_of(shape(shapes, 0), ~0U, true).count() * format_.compute_size) : 0;
  }
  bool has_workspace() const override { return staged_; }

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    OperandShape places = shape(launch.shapes, 0);
    int64_t dense[EP_MAX_RANK];
    BadIndex bad;
    if (!staged_) {
      if (scatter_rising(launch) || scatter_rows(launch, &bad)) return bad.answer(launch, indices_, out_fault);
      scatter(launch, places, &bad, address_of(launch.operands[0]));
      return bad.answer(launch, indices_, out_fault);
    }
    int64_t step = axes_of(places, ~0U, true).count();
    for (int32_t k = 0; k < places.rank; ++k) dense[k] = step /= places.dims[k];
    places.strides = dense;
    read_src(launch);
    scatter(launch, places, &bad, address_of(launch.workspace));
    convert(launch, shape(launch.shapes, 0), address_of(launch.operands[0]), false);
    return bad.answer(launch, indices_, out_fault);
  }

 private:
  static constexpr int64_t fewest_lanes = 64;  // with fewer lanes, positions are divided among threads
  static constexpr int64_t short_strip = 16;   // starting a shorter strip costs more than its updates

  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }
  const char* address(const ep_launch& launch, int32_t i) const { return address_of(launch.operands[i]); }

  // Copies SRC to DST.
  void copy_src(const ep_launch& launch) const {
    char* const to = address_of(launch.operands[0]);
    const char* const from = address(launch, src_);
    if (to == from) return;
    copy_operand(size_, shape(launch.shapes, 0), to, shape(launch.shapes, src_), from, device->simd, device->threads);
  }

  // Converts SRC into the workspace. Single elements are slow to convert, so a SRC with other neighbours than the
  // workspace is copied to DST first.
  void read_src(const ep_launch& launch) const {
    const OperandShape src = shape(launch.shapes, src_), dst = shape(launch.shapes, 0);
    const bool copies = last_run(src) < short_strip && last_run(dst) > last_run(src);
    if (copies) copy_src(launch);
    convert(launch, copies ? dst : src, copies ? address_of(launch.operands[0]) : address(launch, src_), true);
  }

  // The axes of an operand, as `taken`, and of the workspace, as `whole`.
  static SharedAxes with_workspace(const OperandShape& given) {
    SharedAxes axes;
    int64_t step = axes_of(given, ~0U, true).count();
    for (int32_t k = 0; k < given.rank; ++k) {
      step /= given.dims[k];
      axes.add(given.dims[k], {.taken = given.strides[k], .whole = step});
    }
    return axes;
  }
  static int64_t last_run(const OperandShape& given) { return with_workspace(given).last_dim(); }

  // With `reads`, converts an operand into the workspace, in the compute type; otherwise the workspace into the
  // operand.
  void convert(const ep_launch& launch, const OperandShape& given, const char* operand, bool reads) const {
    constexpr int64_t longest = 4096;
    const SharedAxes axes = with_workspace(given);
    const int64_t length = axes.last_dim(), stride = axes.last_steps().taken;
    const int64_t lines = axes.count() / length, pieces = (length + longest - 1) / longest;
    char* const room = address_of(launch.workspace);
    parallel(device->threads, lines * length, [&](int32_t part, int32_t parts) {
      const int64_t units = lines * pieces;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t line = unit / pieces, begin = length * (unit % pieces) / pieces;
        const int64_t n = length * (unit % pieces + 1) / pieces - begin;
        char* const values = room + (line * length + begin) * format_.compute_size;
        const char* const at = operand + (axes.offset(line * length).taken + begin * stride) * size_;
        if (reads) {
          format_.read(values, 1, at, stride, n);
        } else {
          format_.write(const_cast<char*>(at), stride, values, 1, n);
        }
      }
    });
  }

  Walk walk_of(const ep_launch& launch, const OperandShape& places) const {
    const OperandShape updates = shape(launch.shapes, updates_);
    const OperandShape indices = shape(launch.shapes, indices_);
    const OperandShape src = shape(launch.shapes, src_);
    const bool slices = at_.mode == EP_GATHER_SLICES;
    const int32_t along = slices ? indices.rank : 1;
    Walk walk;
    walk.length = places.dims[at_.axis];
    walk.stride = places.strides[at_.axis];
    for (int32_t k = 0; k < updates.rank; ++k) {
      Steps steps;
      steps.taken = updates.strides[k];
      if (k >= at_.axis && k < at_.axis + along) {
        steps.indices = indices.strides[slices ? k - at_.axis : k];
        walk.along.add(updates.dims[k], steps);
        continue;
      }
      const int32_t place = k < at_.axis ? k : k - along + 1;
      steps.indices = slices ? 0 : indices.strides[k];
      steps.whole = places.strides[place];
      steps.src = src.strides[place];
      (k < at_.axis ? walk.outer : walk.inner).add(updates.dims[k], steps);
    }
    return walk;
  }

  // Finds the positions within `range` that n indices address, and notes indices out of range. Returns the numbers of
  // these indices, or NULL if all n are within the range. The positions are in `picked` or, as given, in INDICES.
  const int64_t* find_positions(const char* indices, int64_t step, int64_t n, int64_t length, const Range& range,
                                BadIndex* bad, Picked* picked, const int64_t** positions) const {
    return wide_indices_ ? find_positions(pick_wide_, indices, step, n, length, range, bad, picked, positions)
                         : find_positions(pick_narrow_, indices, step, n, length, range, bad, picked, positions);
  }
  template <class Index>
  static const int64_t* find_positions(Pick<Index> pick, const char* base, int64_t step, int64_t n, int64_t length,
                                       const Range& range, BadIndex* bad, Picked* picked, const int64_t** positions) {
    const auto* const indices = reinterpret_cast<const Index*>(base);
    *positions = picked->positions;
    if (range.low == 0 && range.high == length) {
      picked->count = n;
      if constexpr (sizeof(Index) == 8) {
        if (step == 1 && are_within(indices, n, length)) {
          *positions = reinterpret_cast<const int64_t*>(base);
          return nullptr;
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t given = indices[i * step];
        picked->positions[i] = given + (given >> 63 & length);
      }
      if (are_within(picked->positions, n, length)) return nullptr;
    } else if (step == 1) {
      pick(indices, n, length, range.low, range.high, picked);
      if (!picked->is_outside) return picked->numbers;
    }
    picked->count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t position = resolve_index(indices[i * step], length, bad);
      if (position < range.low || position >= range.high) continue;
      picked->numbers[picked->count] = i;
      picked->positions[picked->count++] = position;
    }
    return picked->numbers;
  }

  // Returns the updates from[numbers[i] * step], or from[i * step] if `numbers` is NULL, as a contiguous list in the
  // type of the positions.
  const char* list_updates(const char* from, int64_t step, const int64_t* numbers, int64_t n, Buffers* buffers) const {
    if (numbers != nullptr) {
      select_(buffers->elements, from, step, numbers, n);
      from = buffers->elements;
      step = 1;
    }
    if (format_.same && step == 1) return from;
    format_.read(buffers->values, 1, from, step, n);
    return buffers->values;
  }

  // Applies the updates of a strip whose positions are within `range`.
  void apply_strip(const Strip& strip, int64_t length, const Range& range, BadIndex* bad, Buffers* buffers) const {
    const int64_t index_step = strip.index_step * (wide_indices_ ? 8 : 4), update_step = strip.update_step * size_;
    char* places = strip.places;
    for (int64_t first = 0; first < strip.n; first += strip.span, places += strip.span_step * place_size_) {
      const int64_t n = std::min(strip.span, strip.n - first);
      Picked& picked = buffers->picked;
      const int64_t* positions = nullptr;
      const int64_t* const numbers = find_positions(strip.indices + first * index_step, strip.index_step, n, length,
                                                    range, bad, &picked, &positions);
      const char* const updates =
          list_updates(strip.updates + first * update_step, strip.update_step, numbers, picked.count, buffers);
      if (numbers == nullptr || strip.lines == nullptr) {
        apply_.each(places, positions, strip.place_stride, strip.lines, updates, picked.count);
        continue;
      }
      for (int64_t i = 0; i < picked.count; ++i)
        picked.positions[i] = picked.positions[i] * strip.place_stride + strip.lines[numbers[i]];
      apply_.each(places, picked.positions, 1, nullptr, updates, picked.count);
    }
  }

  // Applies updates [begin, end) of a slice, whose axes are `inner`, to the positions of the slice.
  void apply_slice(const SharedAxes& inner, int64_t begin, int64_t end, char* places, const char* updates,
                   Buffers* buffers) const {
    const int64_t length = inner.last_dim();
    const Steps step = inner.last_steps();
    for (int64_t i = begin; i < end;) {
      const int64_t row = std::min(end, i - i % length + length);
      Steps at = inner.offset(i);
      if (step.whole == 1 && step.taken == 1 && format_.same) {
        apply_.row(places + at.whole * place_size_, updates + at.taken * size_, row - i);
        i = row;
        continue;
      }
      for (; i < row; i += longest_span, at = at + step * longest_span) {
        const int64_t n = std::min(longest_span, row - i);
        const char* const list = list_updates(updates + at.taken * size_, step.taken, nullptr, n, buffers);
        char* const to = places + at.whole * place_size_;
        if (step.whole == 1) {
          apply_.row(to, list, n);
          continue;
        }
        for (int64_t k = 0; k < n; ++k) buffers->picked.positions[k] = k;
        apply_.each(to, buffers->picked.positions, step.whole, nullptr, list, n);
      }
      i = row;
    }
  }

  // Copies SRC and applies one line of updates whose indices ascend according to a sample: each thread applies adjacent
  // updates, and owns the positions from its first update up to the first one of the next thread. Returns false if
  // there is no such line, or if an index is outside its thread's range; DST must then be computed again.
  bool scatter_rising(const ep_launch& launch) const {
    constexpr int64_t fewest = 1 << 15, samples = 64;
    if (at_.mode == EP_GATHER_COORDINATES || address(launch, src_) == address(launch, 0)) return false;
    const OperandShape dst = shape(launch.shapes, 0);
    const Walk walk = walk_of(launch, dst);
    const int64_t n = walk.along.count();
    if (n < fewest || walk.outer.count() * walk.inner.count() != 1 || walk.along.rank != 1) return false;
    if (walk.along.last_steps().taken != 1 || walk.along.last_steps().indices != 1) return false;
    if (walk.stride != 1 || shape(launch.shapes, src_).strides[at_.axis] != 1) return false;
    if (axes_of(dst, ~0U, true).count() != walk.length) return false;
    const char* const indices = address(launch, indices_);
    int64_t before = -1;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t index = index_at(indices, n * i / samples, wide_indices_);
      if (index <= before || index >= walk.length) return false;
      before = index;
    }
    copy_src(launch);
    return wide_indices_ ? apply_rising(launch, reinterpret_cast<const int64_t*>(indices), n, walk.length)
                         : apply_rising(launch, reinterpret_cast<const int32_t*>(indices), n, walk.length);
  }
  template <class Index>
  bool apply_rising(const ep_launch& launch, const Index* indices, int64_t n, int64_t length) const {
    constexpr int64_t longest_group = 4096;
    const char* const updates = address(launch, updates_);
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
      int64_t offsets[longest_span];
      for (int64_t first = begin; first < end; first += longest_span) {
        const int64_t count = std::min(longest_span, end - first);
        for (int64_t i = 0; i < count; ++i) offsets[i] = indices[first + i] - low;
        if (!are_within(offsets, count, high - low)) {
          fits = false;
          return;
        }
        apply_.each(to + low * size_, offsets, 1, nullptr, updates + first * size_, count);
      }
    });
    return fits;
  }

  // Applies rows of updates to rows of DST. Each thread owns adjacent rows, and copies them from SRC just before. A
  // sample of the indices determines the ranges, so that each has about as many updates. Returns false if there are few
  // rows, the rows are short, or a few of them have most updates; several threads then share each row.
  bool scatter_rows(const ep_launch& launch, BadIndex* bad) const {
    constexpr int64_t shortest = 256, samples = 64, ranges_of_thread = 4;  // bytes of a row
    if (at_.mode != EP_GATHER_SLICES || device->threads == 1) return false;
    const OperandShape src = shape(launch.shapes, src_), dst = shape(launch.shapes, 0);
    const Walk walk = walk_of(launch, dst);
    const int64_t n = walk.along.count(), length = walk.inner.count();
    const int64_t ranges = ranges_of_thread * device->threads;
    if (walk.along.rank != 1 || walk.outer.count() != 1 || !walk.has_rows() || walk.stride != length) return false;
    if (!axes_of(src, ~0U, true).contiguous() || !axes_of(dst, ~0U, true).contiguous()) return false;
    if (length * size_ < shortest || n < samples || ranges > samples / 2 || walk.length < ranges) return false;
    const char* const indices = address(launch, indices_);
    const Steps step = walk.along.last_steps();
    const auto index = [&](int64_t i) { return index_at(indices, i * step.indices, wide_indices_); };
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
    const char* const updates = address(launch, updates_);
    const char* const from = address(launch, src_);
    char* const to = address_of(launch.operands[0]);
    const int64_t row = length * size_;
    parallel(device->threads, (n + walk.length) * row / 16, [&](int32_t part, int32_t parts) {
      const int64_t low = low_of(ranges * part / parts), high = low_of(ranges * (part + 1) / parts);
      if (low >= high) return;
      if (to != from) copy_bytes(to + low * row, from + low * row, static_cast<size_t>((high - low) * row));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t position = resolve_index(index(i), walk.length, bad);
        if (position >= low && position < high)
          apply_.row(to + position * row, updates + i * step.taken * size_, length);
      }
    });
    return true;
  }

  // Applies every update, keeping the order per position. `to` holds the positions, whose shape is `places`.
  void scatter(const ep_launch& launch, const OperandShape& places, BadIndex* bad, char* to) const {
    if (at_.mode == EP_GATHER_COORDINATES) {
      if (!staged_) copy_src(launch);
      return by_coordinates(launch, places, bad, to);
    }
    const Walk walk = walk_of(launch, places);
    if (at_.mode == EP_GATHER_SLICES && walk.inner.last_dim() >= short_strip) {
      if (!staged_) copy_src(launch);
      return by_slices(launch, walk, bad, to);
    }
    if (uses_tables(walk)) {
      copy_src(launch);
      return add_in_tables(launch, walk, bad, to);
    }
    by_strips(launch, walk, bad, to);
  }

  // True for many integers that are added into one line of few positions.
  bool uses_tables(const Walk& walk) const {
    constexpr int64_t most_places = 1024;
    const int64_t n = walk.along.count();
    if (at_.op != EP_SCATTER_ADD || is_floating(desc_.operands[0].dtype)) return false;
    if (walk.length > most_places || n < 16 * walk.length || n < (1 << 15)) return false;
    return walk.outer.count() * walk.inner.count() == 1 && walk.along.rank == 1;
  }

  // Adjacent updates are added into different tables, so that equal ones do not wait for each other.
  void add_in_tables(const ep_launch& launch, const Walk& walk, BadIndex* bad, char* to) const {
    constexpr int64_t tables = 4;
    const int64_t n = walk.along.count(), index_size = wide_indices_ ? 8 : 4;
    const int64_t table_size = walk.length * size_, spans = (n + longest_span - 1) / longest_span;
    const Steps step = walk.along.last_steps();
    std::vector<uint64_t> sums(static_cast<size_t>((device->threads * tables * table_size + 7) / 8));
    char* const all = reinterpret_cast<char*>(sums.data());
    int64_t tables_of[longest_span];
    for (int64_t i = 0; i < longest_span; ++i) tables_of[i] = i % tables * walk.length;
    parallel(device->threads, n, [&](int32_t part, int32_t parts) {
      Buffers buffers;
      char* const mine = all + runner() * tables * table_size;
      for (int64_t span = spans * part / parts; span < spans * (part + 1) / parts; ++span) {
        const int64_t first = span * longest_span, count = std::min(longest_span, n - first);
        const Steps at = step * first;
        Picked& picked = buffers.picked;
        const int64_t* positions = nullptr;
        const int64_t* const numbers = find_positions(address(launch, indices_) + at.indices * index_size, step.indices,
                                                      count, walk.length, {0, walk.length}, bad, &picked, &positions);
        const char* const updates = address(launch, updates_) + at.taken * size_;
        apply_.each(mine, positions, 1, tables_of, list_updates(updates, step.taken, numbers, picked.count, &buffers),
                    picked.count);
      }
    });
    std::vector<int64_t> positions(static_cast<size_t>(walk.length));
    std::iota(positions.begin(), positions.end(), int64_t{0});
    for (int64_t table = 0; table < device->threads * tables; ++table) {
      apply_.each(to, positions.data(), walk.stride, nullptr, all + table * table_size, walk.length);
    }
  }

  // Applies slices of updates. Each thread takes some of the lanes if there are many, else a range of positions.
  void by_slices(const ep_launch& launch, const Walk& walk, BadIndex* bad, char* to) const {
    const int64_t inner = walk.inner.count(), lanes = walk.outer.count() * inner, along = walk.along.count();
    const bool by_lane = lanes >= fewest_lanes;
    const bool rows = format_.same && walk.has_rows();
    const int64_t width = walk.has_rows() ? std::clamp<int64_t>(lanes / (2 * device->threads), 16, 256) : 1;
    const int64_t pieces = by_lane ? (lanes + width - 1) / width : device->threads >= 4 ? device->threads : 1;
    const int64_t quarters = walk.has_rows() ? 2 : 16;  // quarters of a nanosecond per element
    parallel(device->threads, lanes * along * quarters / 4, [&](int32_t part, int32_t parts) {
      const int64_t first = pieces * part / parts, last = pieces * (part + 1) / parts;
      if (first >= last) return;
      const int64_t first_lane = by_lane ? first * width : 0;
      const int64_t last_lane = by_lane ? std::min(last * width, lanes) : lanes;
      const Range range{by_lane ? 0 : walk.length * first / pieces,
                        by_lane ? walk.length : walk.length * last / pieces};
      Buffers buffers;
      for (int64_t o = first_lane / inner; o * inner < last_lane; ++o) {
        const int64_t begin = std::max(first_lane - o * inner, int64_t{0}),
                      end = std::min(last_lane - o * inner, inner);
        const Steps outer = walk.outer.offset(o);
        for (int64_t a = 0; a < along; ++a) {
          const Steps at = outer + walk.along.offset(a);
          const int64_t given = index_at(address(launch, indices_), at.indices, wide_indices_);
          const int64_t position = resolve_index(given, walk.length, bad);
          if (position < range.low || position >= range.high) continue;
          char* const line = to + (at.whole + position * walk.stride) * place_size_;
          const char* const updates = address(launch, updates_) + at.taken * size_;
          if (rows)
            apply_.row(line + begin * size_, updates + begin * size_, end - begin);
          else
            apply_slice(walk.inner, begin, end, line, updates, &buffers);
        }
      }
    });
  }

  // How updates are divided into strips. A strip runs along one axis, or along two: the last axis and the one before.
  // The other axes are `lanes`, which are divided among threads, and `along`.
  struct StripAxes {
    SharedAxes lanes, along;
    int64_t n = 1, inner = 1;   // elements of a strip, and of the second of two axes
    Steps steps, inner_steps;   // steps of the axis, or of both axes
    bool is_divisible = false;  // the strip, or the first of two axes, is an axis of lanes
  };
  static StripAxes strip_axes(const Walk& walk) {
    StripAxes axes;
    axes.lanes.add(walk.outer);
    axes.lanes.add(walk.inner);
    axes.along = walk.along;
    // A short last axis is read together with the one before, if that is possible.
    const auto continues = [](const SharedAxes& outer, int64_t dim, const Steps& inner) {
      const Steps steps = outer.last_steps();
      return outer.rank > 0 && steps.taken == dim * inner.taken && steps.indices == dim * inner.indices;
    };
    if (walk.inner.rank == 1 && walk.inner.dims[0] < short_strip &&
        continues(walk.along, walk.inner.dims[0], walk.inner.steps[0])) {
      axes.inner = walk.inner.dims[0];
      axes.inner_steps = walk.inner.steps[0];
      axes.steps = walk.along.last_steps();
      axes.n = axes.inner * walk.along.last_dim();
      axes.lanes = walk.outer;
      --axes.along.rank;
      return axes;
    }
    if (walk.inner.rank == 0 && walk.along.rank == 1 && walk.along.dims[0] < short_strip &&
        continues(walk.outer, walk.along.dims[0], walk.along.steps[0])) {
      axes.inner = walk.along.dims[0];
      axes.inner_steps = walk.along.steps[0];
      axes.steps = walk.outer.last_steps();
      axes.n = axes.inner * walk.outer.last_dim();
      axes.is_divisible = true;
      --axes.lanes.rank;
      --axes.along.rank;
      return axes;
    }
    // Else the axis with the least steps that is not short, or the longest axis.
    axes.n = axes.along.last_dim();
    axes.steps = axes.along.last_steps();
    const auto cost = [](const Steps& steps) {
      return std::abs(steps.taken) + std::abs(steps.indices) + std::abs(steps.whole);
    };
    int32_t best = -1;
    for (int32_t k = axes.lanes.rank - 1; k >= 0; --k) {
      const int64_t dim = axes.lanes.dims[k];
      const bool is_better =
          dim < short_strip || axes.n < short_strip ? dim > axes.n : cost(axes.lanes.steps[k]) < cost(axes.steps);
      if (!is_better) continue;
      best = k;
      axes.n = dim;
      axes.steps = axes.lanes.steps[k];
    }
    axes.is_divisible = best >= 0;
    if (axes.is_divisible) {
      axes.lanes.remove(best);
    } else if (axes.along.rank > 0) {
      --axes.along.rank;
    }
    return axes;
  }

  // Applies single updates. Each thread takes some of the lanes if there are many, else a range of positions.
  void by_strips(const ep_launch& launch, const Walk& walk, BadIndex* bad, char* to) const {
    const StripAxes axes = strip_axes(walk);
    Strip model{};
    const bool is_pair = axes.inner > 1;
    model.index_step = (is_pair ? axes.inner_steps : axes.steps).indices;
    model.update_step = (is_pair ? axes.inner_steps : axes.steps).taken;
    model.place_stride = walk.stride;
    model.span = longest_span - longest_span % axes.inner;
    model.span_step = model.span / axes.inner * axes.steps.whole;
    int64_t lines[longest_span];
    if (axes.steps.whole != 0 || axes.inner_steps.whole != 0) {
      for (int64_t i = 0; i < model.span; ++i)
        lines[i] = i / axes.inner * axes.steps.whole + i % axes.inner * axes.inner_steps.whole;
      model.lines = lines;
    }
    const int64_t most = 4 * model.span;  // so that the positions of divisible strips stay in the cache
    const int64_t blocks = axes.is_divisible ? (axes.n + most - 1) / most : 1;
    const int64_t block = axes.is_divisible ? most : axes.n;
    const int64_t units = axes.lanes.count() * blocks, along = axes.along.count();
    const bool by_lane = axes.lanes.count() * (axes.is_divisible ? axes.n / axes.inner : 1) >= fewest_lanes;
    const bool picks = !axes.is_divisible && along == 1 && model.index_step == 1;
    const int64_t pieces = by_lane ? units : picks || device->threads >= 4 ? device->threads : 1;
    // Lines that are contiguous in SRC and DST are copied just before their updates.
    const OperandShape src = shape(launch.shapes, src_);
    const bool copies_lines = !staged_ && by_lane && model.lines == nullptr && !axes.is_divisible && walk.stride == 1 &&
                              address(launch, src_) != to && src.strides[at_.axis] == 1 &&
                              units * walk.length == axes_of(src, ~0U, true).count();
    if (!staged_ && !copies_lines) copy_src(launch);
    const int64_t updates = along * axes.lanes.count() * axes.n;
    parallel(device->threads, updates * 4, [&](int32_t part, int32_t parts) {
      const int64_t first = pieces * part / parts, last = pieces * (part + 1) / parts;
      if (first >= last) return;
      const Range range{by_lane ? 0 : walk.length * first / pieces,
                        by_lane ? walk.length : walk.length * last / pieces};
      Buffers buffers;
      Strip strip = model;
      for (int64_t unit = by_lane ? first : 0; unit < (by_lane ? last : units); ++unit) {
        const int64_t begin = unit % blocks * block;
        strip.n = std::min(block, axes.n - begin);
        const Steps lane = axes.lanes.offset(unit / blocks) + axes.steps * (begin / axes.inner);
        if (copies_lines)
          copy_bytes(to + lane.whole * size_, address(launch, src_) + lane.src * size_,
                     static_cast<size_t>(walk.length * size_));
        for (int64_t a = 0; a < along; ++a) {
          const Steps at = lane + axes.along.offset(a);
          strip.indices = address(launch, indices_) + at.indices * (wide_indices_ ? 8 : 4);
          strip.updates = address(launch, updates_) + at.taken * size_;
          strip.places = to + at.whole * place_size_;
          apply_strip(strip, walk.length, range, bad, &buffers);
        }
      }
    });
  }

  // Applies updates by coordinates. Each thread takes some of the lanes if there are many, else a range of the first
  // coordinate.
  void by_coordinates(const ep_launch& launch, const OperandShape& whole, BadIndex* bad, char* to) const {
    const OperandShape updates = shape(launch.shapes, updates_);
    const OperandShape indices = shape(launch.shapes, indices_);
    const Coordinates named(whole, indices, at_.axis);
    const Axes outer = axes_before(updates, indices.rank - 1);
    SharedAxes axes;
    for (int32_t k = indices.rank - 1; k < updates.rank; ++k) {
      const int32_t place = whole.rank - updates.rank + k;
      axes.add(updates.dims[k], {.taken = updates.strides[k], .whole = whole.strides[place]});
    }
    const int64_t inner = axes.count();
    const bool by_lane = inner >= 64;
    const char* const from = address(launch, updates_);
    const char* const index_base = address(launch, indices_);
    const int64_t count = named.places();
    parallel(device->threads, count * (10 + inner), [&](int32_t part, int32_t parts) {
      const int64_t begin = by_lane ? inner * part / parts : 0;
      const int64_t end = by_lane ? inner * (part + 1) / parts : inner;
      const int64_t pieces = device->threads;
      const int64_t low = by_lane ? 0 : named.first_length() * (pieces * part / parts) / pieces;
      const int64_t high =
          by_lane ? named.first_length() : named.first_length() * (pieces * (part + 1) / parts) / pieces;
      if (low >= high) return;
      Buffers buffers;
      Picked& picked = buffers.picked;
      picked.count = 0;
      const auto apply_picked = [&] {
        const char* const list = list_updates(from, 1, picked.numbers, picked.count, &buffers);
        apply_.each(to, picked.positions, 1, nullptr, list, picked.count);
        picked.count = 0;
      };
      for (int64_t i = 0; i < count; ++i) {
        int64_t first = 0;
        const int64_t offset = named.offset(index_base, wide_indices_, i, bad, &first);
        if (offset < 0 || first < low || first >= high) continue;
        if (inner > 1) {
          apply_slice(axes, begin, end, to + offset * place_size_, from + outer.offset(i) * size_, &buffers);
          continue;
        }
        picked.numbers[picked.count] = outer.offset(i);
        picked.positions[picked.count++] = offset;
        if (picked.count == longest_span) apply_picked();
      }
      if (picked.count > 0) apply_picked();
    });
  }

  ep_primitive_desc desc_;
  ep_scatter_attributes at_;
  int32_t src_, updates_, indices_;
  int32_t size_;
  RowFormat format_;
  int64_t place_size_;
  bool wide_indices_;
  bool staged_;  // true: combines in the workspace
  Apply apply_;
  Select select_;
  Pick<int64_t> pick_wide_;
  Pick<int32_t> pick_narrow_;
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
