#include "providers/cpu/resize/resize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "providers/cpu/resize/kernel.h"
#include "providers/cpu/resize/taps.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// One launch. The axes are sorted by DST's strides, the innermost last.
struct Work {
  int32_t rank = 0;
  Axes src, dst;
  std::vector<Taps> taps;
  bool extrapolates = false;
};

Work work_of(const ep_launch& launch, const ep_primitive_desc& desc) {
  const ep_resize_attributes& at = desc.attributes.resize;
  const OperandShape dst = shape_of(desc.operands[0], launch.shapes, 0);
  const OperandShape src = shape_of(desc.operands[1], launch.shapes, 1);
  int32_t order[EP_MAX_RANK];
  std::iota(order, order + dst.rank, 0);
  std::stable_sort(order, order + dst.rank, [&](int32_t a, int32_t b) { return dst.strides[a] > dst.strides[b]; });
  Work work;
  work.rank = dst.rank;
  work.extrapolates = (at.flags & EP_RESIZE_FLAG_EXTRAPOLATE) != 0;
  for (int32_t i = 0; i < dst.rank; ++i) {
    const int32_t axis = order[i];
    work.src.add(src.dims[axis], src.strides[axis]);
    work.dst.add(dst.dims[axis], dst.strides[axis]);
    work.taps.push_back(taps_of(at, axis, src.dims[axis], dst.dims[axis]));
  }
  return work;
}

constexpr int64_t kFewInner = 8;             // fewer elements behind an axis are interpolated together with it
constexpr int64_t kChunkBytes = 256 * 1024;  // the rows of a chunk stay in the L2 cache
constexpr int64_t kFewestRows = 8;           // a chunk has at least as many, if the block has

// One pass: interpolation along one axis. The elements behind the axis are contiguous.
template <class T>
struct BlendPass {
  int32_t axis = 0;
  bool among_rows = false;                         // the axis is the one of the rows
  int64_t outer = 1, from = 1, to = 1, inner = 1;  // lengths of a row before and behind the axis, and of the axis
  int64_t taps = 1;
  std::vector<int64_t> offsets;  // by index and tap
  std::vector<T> weights;
  std::vector<int32_t> places;  // by tap, index and element behind the axis, like the weights then; empty: not used

  BlendPass(const Taps& along, int32_t axis, bool among_rows, int64_t outer, int64_t from, int64_t to, int64_t inner)
      : axis(axis), among_rows(among_rows), outer(outer), from(from), to(to), inner(inner), taps(along.count) {
    if (!among_rows && inner < kFewInner && from * inner <= std::numeric_limits<int32_t>::max()) {
      for (int64_t k = 0; k < taps; ++k) {
        for (int64_t i = 0; i < to * inner; ++i) {
          const auto tap = static_cast<size_t>(i / inner * taps + k);
          places.push_back(static_cast<int32_t>(along.places[tap] * inner + i % inner));
          weights.push_back(static_cast<T>(along.weights[tap]));
        }
      }
      return;
    }
    for (const int64_t place : along.places) offsets.push_back(place * inner);
    for (const double weight : along.weights) weights.push_back(static_cast<T>(weight));
  }

  // Interpolates one row.
  void run(const BlendKernels<T>& kernels, const T* src, T* dst) const {
    for (int64_t o = 0; o < outer; ++o, src += from * inner, dst += to * inner) {
      if (!places.empty()) {
        kernels.places(dst, src, places.data(), weights.data(), taps, to * inner);
        continue;
      }
      for (int64_t j = 0; j < to; ++j) {
        kernels.rows(dst + j * inner, src, offsets.data() + j * taps, weights.data() + j * taps, taps, inner);
      }
    }
  }
};

// Blocks along the first axes, which do not change, are independent. A block consists of rows along the first axis that
// changes, unless the rows would be short; then it is one row. Chunks of rows of DST are independent too.
template <class T>
class BlendPlan {
 public:
  explicit BlendPlan(Work of) : work(std::move(of)) {
    while (lead + 1 < work.rank && work.taps[static_cast<size_t>(lead)].identity) ++lead;
    first = product(work.dst.dims, lead + 1, work.rank) < kFewInner || work.rank == 0 ? lead : lead + 1;
    if (has_rows()) {
      rows_from = work.src.dims[lead];
      rows_to = work.dst.dims[lead];
    }
    row_from = product(work.src.dims, first, work.rank);
    row_to = product(work.dst.dims, first, work.rank);
    chunk = kChunkBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, std::max(row_from, row_to));
    chunk = std::min(std::max(chunk, kFewestRows), std::max<int64_t>(1, rows_to));
    make_passes();
  }

  static int64_t product(const int64_t* dims, int32_t begin, int32_t end) {
    return std::accumulate(dims + begin, dims + std::max(begin, end), int64_t{1}, std::multiplies<>());
  }
  bool has_rows() const { return first > lead; }
  int64_t chunks() const { return (rows_to + chunk - 1) / chunk; }

  Work work;
  int32_t lead = 0, first = 0;         // the first axis of a block, and of a row
  int64_t rows_from = 1, rows_to = 1;  // the rows of a block of SRC, and of DST
  int64_t row_from = 1, row_to = 1;    // elements of a row
  int64_t chunk = 1;                   // rows of DST
  std::vector<BlendPass<T>> passes;

 private:
  // Estimates the time of passes along `axes` in this order: an element that is gathered takes as long as four of a
  // row.
  double cost(const std::vector<int32_t>& axes) const {
    int64_t dims[EP_MAX_RANK];
    std::copy_n(work.src.dims, work.rank, dims);
    double sum = 0;
    for (const int32_t axis : axes) {
      dims[axis] = work.dst.dims[axis];
      const bool gathers = product(dims, axis + 1, work.rank) < kFewInner;
      const int64_t elements = product(dims, lead, work.rank) * work.taps[static_cast<size_t>(axis)].count;
      sum += static_cast<double>(elements) * (gathers ? 4 : 1);
    }
    return sum;
  }

  void make_passes() {
    std::vector<int32_t> axes, best;
    for (int32_t axis = lead; axis < work.rank; ++axis) {
      if (!work.taps[static_cast<size_t>(axis)].identity) axes.push_back(axis);
    }
    best = axes;
    if (axes.size() <= 4) {
      while (std::next_permutation(axes.begin(), axes.end())) {
        if (cost(axes) < cost(best)) best = axes;
      }
    }
    int64_t dims[EP_MAX_RANK];
    std::copy_n(work.src.dims, work.rank, dims);
    for (const int32_t axis : best) {
      const int64_t outer = product(dims, first, axis), to = work.dst.dims[axis];
      passes.emplace_back(work.taps[static_cast<size_t>(axis)], axis, axis < first, outer, dims[axis], to,
                          product(dims, axis + 1, work.rank));
      dims[axis] = to;
    }
  }
};

template <class T>
class BlendPrimitive final : public ep_primitive {
 public:
  BlendPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc), format_(desc.operands[0].dtype, on.simd), kernels_(blend_kernels<T>(on.simd)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const BlendPlan<T> plan(work_of(launch, desc_));
    const int64_t blocks = part_of(plan.work.dst, 0, plan.lead).count();
    const int64_t units = blocks * plan.chunks();
    const int64_t elements = blocks * (plan.rows_to * plan.row_to + plan.rows_from * plan.row_from);
    parallel(device->threads, elements, [&](int32_t part, int32_t parts) {
      Room room;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t row = unit % plan.chunks() * plan.chunk;
        run_chunk(launch, plan, unit / plan.chunks(), row, std::min(plan.rows_to, row + plan.chunk), &room);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // The buffers of one thread. The first holds rows of SRC.
  struct Room {
    std::vector<T> rows, passes[2];
    std::vector<int64_t> read;                  // the rows of SRC that a chunk reads, ascending
    std::vector<int64_t> offsets, tap_offsets;  // where rows begin in the values; where the taps of one row begin
  };

  static Axes part_of(const Axes& axes, int32_t begin, int32_t end) {
    Axes part;
    for (int32_t i = begin; i < end; ++i) part.add(axes.dims[i], axes.strides[i]);
    return part;
  }

  // Returns the values of the rows in room->read, at room->offsets: in place, or in a buffer.
  const T* read_rows(const char* from, const BlendPlan<T>& plan, Room* room) const {
    const Axes row = part_of(plan.work.src, plan.first, plan.work.rank);
    const int64_t stride = plan.has_rows() ? plan.work.src.strides[plan.lead] : 0;
    room->offsets.clear();
    if (format_.in_place(row)) {
      for (const int64_t each : room->read) room->offsets.push_back(each * stride);
      return reinterpret_cast<const T*>(from);
    }
    room->rows.resize(std::max(room->rows.size(), room->read.size() * static_cast<size_t>(plan.row_from)));
    for (const int64_t each : room->read) {
      T* const to = room->rows.data() + static_cast<int64_t>(room->offsets.size()) * plan.row_from;
      format_.fetch(from + each * stride * format_.size, row, to);
      room->offsets.push_back(to - room->rows.data());
    }
    return room->rows.data();
  }

  // Computes rows [begin, end) of a block of DST.
  void run_chunk(const ep_launch& launch, const BlendPlan<T>& plan, int64_t block, int64_t begin, int64_t end,
                 Room* room) const {
    const Work& work = plan.work;
    const Axes outer_src = part_of(work.src, 0, plan.lead), outer_dst = part_of(work.dst, 0, plan.lead);
    const int64_t dst_stride = plan.has_rows() ? work.dst.strides[plan.lead] : 0;
    char* const to = address_of(launch.operands[0]) + (outer_dst.offset(block) + begin * dst_stride) * format_.size;
    rows_read(plan, begin, end, &room->read);
    const T* values = read_rows(address_of(launch.operands[1]) + outer_src.offset(block) * format_.size, plan, room);
    Axes result = part_of(work.dst, plan.has_rows() ? plan.lead : plan.first, work.rank);
    if (plan.has_rows()) result.dims[0] = end - begin;
    T* const direct = format_.in_place(result) ? reinterpret_cast<T*>(to) : nullptr;
    for (size_t i = 0; i < plan.passes.size(); ++i) {
      const BlendPass<T>& pass = plan.passes[i];
      std::vector<T>& buffer = room->passes[i % 2];
      const int64_t rows = pass.among_rows ? end - begin : static_cast<int64_t>(room->read.size());
      const int64_t length = pass.among_rows ? pass.inner : pass.outer * pass.to * pass.inner;
      T* dst = i + 1 == plan.passes.size() ? direct : nullptr;
      if (dst == nullptr) {
        buffer.resize(std::max(buffer.size(), static_cast<size_t>(rows * length)));
        dst = buffer.data();
      }
      if (pass.among_rows) {
        blend_rows(plan, pass, begin, end, values, dst, room);
        room->read.resize(static_cast<size_t>(rows));
      } else {
        for (int64_t row = 0; row < rows; ++row) {
          pass.run(kernels_, values + room->offsets[static_cast<size_t>(row)], dst + row * length);
        }
      }
      room->offsets.resize(static_cast<size_t>(rows));
      for (int64_t row = 0; row < rows; ++row) room->offsets[static_cast<size_t>(row)] = row * length;
      values = dst;
    }
    finish(launch, plan, block, begin, result, values, direct, to, room);
  }

  // Writes the values of a chunk to DST, unless the last pass did, and the elements outside of SRC.
  void finish(const ep_launch& launch, const BlendPlan<T>& plan, int64_t block, int64_t begin, const Axes& result,
              const T* values, T* direct, char* to, Room* room) const {
    const int64_t count = result.count();
    if (!plan.work.extrapolates) {
      if (values == direct) return;
      if (!plan.passes.empty()) return format_.put(to, result, values);
    }
    T* changed = direct;
    if (values != direct) {
      // The values may be SRC, whose rows may lie apart.
      std::vector<T>& buffer = room->passes[plan.passes.size() % 2];
      buffer.resize(std::max(buffer.size(), static_cast<size_t>(count)));
      changed = buffer.data();
      const auto rows = static_cast<int64_t>(room->offsets.size());
      for (int64_t row = 0; row < rows; ++row) {
        std::copy_n(values + room->offsets[static_cast<size_t>(row)], count / rows, changed + row * (count / rows));
      }
    }
    if (plan.work.extrapolates) {
      const double fill = launch.scalar_count > 0 ? launch.scalars[0].value.f64 : 0;
      extrapolate(plan, block, begin, result, static_cast<T>(fill), changed);
    }
    if (changed != direct) format_.put(to, result, changed);
  }

  // The rows of SRC that rows [begin, end) of DST read.
  static void rows_read(const BlendPlan<T>& plan, int64_t begin, int64_t end, std::vector<int64_t>* rows) {
    if (!plan.has_rows()) return rows->assign(1, 0);
    const Taps& taps = plan.work.taps[static_cast<size_t>(plan.lead)];
    if (taps.identity) {
      rows->resize(static_cast<size_t>(end - begin));
      return std::iota(rows->begin(), rows->end(), begin);
    }
    rows->assign(taps.places.begin() + begin * taps.count, taps.places.begin() + end * taps.count);
    std::sort(rows->begin(), rows->end());
    rows->erase(std::unique(rows->begin(), rows->end()), rows->end());
  }

  // The pass along the axis of the rows.
  void blend_rows(const BlendPlan<T>& plan, const BlendPass<T>& pass, int64_t begin, int64_t end, const T* values,
                  T* dst, Room* room) const {
    const Taps& taps = plan.work.taps[static_cast<size_t>(plan.lead)];
    room->tap_offsets.resize(static_cast<size_t>(taps.count));
    for (int64_t j = begin; j < end; ++j, dst += pass.inner) {
      for (int64_t k = 0; k < taps.count; ++k) {
        const int64_t place = taps.places[static_cast<size_t>(j * taps.count + k)];
        const auto row = std::lower_bound(room->read.begin(), room->read.end(), place) - room->read.begin();
        room->tap_offsets[static_cast<size_t>(k)] = room->offsets[static_cast<size_t>(row)];
      }
      kernels_.rows(dst, values, room->tap_offsets.data(), pass.weights.data() + j * taps.count, taps.count,
                    pass.inner);
    }
  }

  // Writes `fill` to elements of a chunk whose position is outside SRC. The chunk begins with row `begin`.
  static void extrapolate(const BlendPlan<T>& plan, int64_t block, int64_t begin, const Axes& chunk, T fill,
                          T* values) {
    const Work& work = plan.work;
    bool all = false;
    for (int32_t axis = plan.lead - 1; axis >= 0; --axis) {
      all = all || work.taps[static_cast<size_t>(axis)].outside[static_cast<size_t>(block % work.dst.dims[axis])];
      block /= work.dst.dims[axis];
    }
    const int64_t count = chunk.count();
    if (all) std::fill_n(values, count, fill);
    int64_t inner = 1;
    for (int32_t axis = work.rank - 1, i = chunk.rank - 1; i >= 0; --axis, --i) {
      const std::vector<bool>& outside = work.taps[static_cast<size_t>(axis)].outside;
      const int64_t dim = chunk.dims[i], from = i == 0 ? begin : 0;
      for (int64_t row = 0; row < count / inner; ++row) {
        if (outside[static_cast<size_t>(from + row % dim)]) std::fill_n(values + row * inner, inner, fill);
      }
      inner *= dim;
    }
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  BlendKernels<T> kernels_;
};

// Copies `bytes` bytes between places that do not overlap.
inline void copy_run(char* to, const char* from, int64_t bytes) {
  constexpr int64_t piece = 16;
  if (bytes < piece || bytes > 32 * piece) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i + piece <= bytes; i += piece) std::memcpy(to + i, from + i, piece);
  std::memcpy(to + bytes - piece, from + bytes - piece, piece);
}

// nearest, for elements of one size. If the innermost axis does not change and is contiguous, its elements are copied
// together.
template <class T>
class NearestPrimitive final : public ep_primitive {
 public:
  explicit NearestPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Work work = work_of(launch, desc_);
    int32_t last = work.rank - 1;
    int64_t run = 1;  // elements that are copied together
    if (last > 0 && work.taps[static_cast<size_t>(last)].identity && work.src.strides[last] == 1 &&
        work.dst.strides[last] == 1) {
      run = work.dst.dims[last--];
    }
    const Taps& inner = work.taps[static_cast<size_t>(last)];
    const int64_t width = work.dst.dims[last], stride = work.dst.strides[last];
    std::vector<int64_t> offsets(static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i) {
      offsets[static_cast<size_t>(i)] = inner.places[static_cast<size_t>(i)] * work.src.strides[last];
    }
    T fill = {};
    if (launch.scalar_count > 0) fill = filling(launch.scalars[0]);
    const int64_t elements = work.dst.count(), rows = elements == 0 ? 0 : elements / width / run;
    const auto* const from = reinterpret_cast<const T*>(address_of(launch.operands[1]));
    auto* const to = reinterpret_cast<T*>(address_of(launch.operands[0]));
    parallel(device->threads, rows * (width * std::max<int64_t>(1, run / 8) + 20), [&](int32_t part, int32_t parts) {
      const T* copied = nullptr;  // the row of SRC that the last row of DST, at `copy`, holds
      const T* copy = nullptr;
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        int64_t src = 0, dst = 0, rest = row;
        bool outside = false;
        for (int32_t axis = last - 1; axis >= 0; --axis) {
          const int64_t i = rest % work.dst.dims[axis];
          rest /= work.dst.dims[axis];
          const Taps& taps = work.taps[static_cast<size_t>(axis)];
          src += taps.places[static_cast<size_t>(i)] * work.src.strides[axis];
          dst += i * work.dst.strides[axis];
          outside = outside || taps.outside[static_cast<size_t>(i)];
        }
        T* const out = to + dst;
        if (from + src == copied && stride == run && !work.extrapolates) {
          std::copy_n(copy, width * run, out);
        } else {
          copy_row(from + src, offsets, out, stride, run);
        }
        copied = from + src;
        copy = out;
        if (!work.extrapolates) continue;
        for (int64_t i = 0; i < width; ++i) {
          if (outside || inner.outside[static_cast<size_t>(i)]) std::fill_n(out + i * stride, run, fill);
        }
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // Copies runs of `run` elements from `offsets` in `from` to places that are `stride` apart.
  static void copy_row(const T* from, const std::vector<int64_t>& offsets, T* out, int64_t stride, int64_t run) {
    const auto width = static_cast<int64_t>(offsets.size());
    if (run == 1) {
      for (int64_t i = 0; i < width; ++i) out[i * stride] = from[offsets[static_cast<size_t>(i)]];
      return;
    }
    const int64_t bytes = run * static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < width; ++i) {
      copy_run(reinterpret_cast<char*>(out + i * stride),
               reinterpret_cast<const char*>(from + offsets[static_cast<size_t>(i)]), bytes);
    }
  }

  T filling(const ep_scalar& scalar) const {
    const int32_t dtype = desc_.operands[0].dtype;
    T value = {};
    if (is_floating(dtype)) {
      narrow(EP_DTYPE_f64, dtype)(&value, 1, &scalar.value.f64, 1, 1);
    } else {
      narrow(EP_DTYPE_u64, dtype)(&value, 1, &scalar.value.u64, 1, 1);
    }
    return value;
  }

  ep_primitive_desc desc_;
};

}  // namespace

Refusal Resize::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_resize_attributes& at = desc.attributes.resize;
  constexpr int32_t known =
      EP_RESIZE_FLAG_HALF | EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE | EP_RESIZE_FLAG_EXTRAPOLATE;
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  if (at.mode < EP_RESIZE_NEAREST || at.mode > EP_RESIZE_CUBIC) return Refusal::because("mode %d", at.mode);
  if ((at.flags & ~known) != 0) return Refusal::because("flags %d", at.flags);
  if (at.round < 0 || at.round > EP_RESIZE_PREFER_CEIL) return Refusal::because("rounding %d", at.round);
  const int32_t dtype = desc.operands[0].dtype;
  if (desc.operands[1].dtype != dtype || desc.operands[1].rank != desc.operands[0].rank)
    return Refusal::because("DST and SRC of different dtypes or ranks");
  if (at.mode == EP_RESIZE_NEAREST ? dtype_size(dtype) == 0 || wide_dtype(dtype) == 0 : !is_row_float(dtype))
    return Refusal::because("elements of %s", dtype_name(dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Resize::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype = desc.operands[0].dtype;
  if (desc.attributes.resize.mode != EP_RESIZE_NEAREST) {
    if (dtype == EP_DTYPE_f64) {
      *out = make_primitive<BlendPrimitive<double>>(device, device, desc);
    } else {
      *out = make_primitive<BlendPrimitive<float>>(device, device, desc);
    }
    return {};
  }
  switch (dtype_size(dtype)) {
    case 1: *out = make_primitive<NearestPrimitive<uint8_t>>(device, desc); break;
    case 2: *out = make_primitive<NearestPrimitive<uint16_t>>(device, desc); break;
    case 4: *out = make_primitive<NearestPrimitive<uint32_t>>(device, desc); break;
    default: *out = make_primitive<NearestPrimitive<uint64_t>>(device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
