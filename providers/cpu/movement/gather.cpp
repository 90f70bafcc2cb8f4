// gather of whole slices, of single elements, and by coordinates. An index out of range is a fault, and its element of
// the result is not written.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/movement/coordinates.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/shared_axes.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// dst[i] = src[index[i]], the most common case. Indices of a whole block are checked together, with vectors.
template <class T, class Index>
void pick_from_row(T* out, const T* from, const Index* indices, int64_t n, int64_t length, BadIndex* bad) {
  using Bits = std::make_unsigned_t<Index>;
  constexpr int64_t block = 32;
  const auto last = static_cast<Bits>(std::min<int64_t>(length - 1, std::numeric_limits<Index>::max()));
  const auto checked = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto given = static_cast<int64_t>(indices[i]);
      const int64_t position = given + (given >> 63 & length);
      if (static_cast<uint64_t>(position) < static_cast<uint64_t>(length)) [[likely]]
        out[i] = from[position];
      else
        bad->note(given, length);
    }
  };
  int64_t i = 0;
  for (; i + block <= n; i += block) {
    Bits beyond = 0;  // the highest bit is set if an index is negative or too large
    for (int64_t k = i; k < i + block; ++k) {
      const auto given = static_cast<Bits>(indices[k]);
      beyond |= given | (last - given);
    }
    if (static_cast<Index>(beyond) < 0) {
      checked(i, i + block);
    } else {
      for (int64_t k = i; k < i + block; ++k) out[k] = from[indices[k]];
    }
  }
  checked(i, n);
}

// dst[i] = src[index[i] * stride] for i < n, where each operand has a step for i. Elements with an index out of range
// are not written.
template <class T, class Index>
void pick(char* dst, const char* src, const char* index, int64_t n, const Steps& steps, int64_t stride, int64_t length,
          BadIndex* bad) {
  T* out = reinterpret_cast<T*>(dst);
  const T* from = reinterpret_cast<const T*>(src);
  const auto* indices = reinterpret_cast<const Index*>(index);
  const bool dense = steps.taken == 1 && steps.indices == 1;
  if (dense && steps.whole == 0 && stride == 1) return pick_from_row(out, from, indices, n, length, bad);
  const auto each = [&, whole = steps.whole](int64_t to_step, int64_t index_step) {
    for (int64_t i = 0; i < n; ++i) {
      const auto given = static_cast<int64_t>(indices[i * index_step]);
      const int64_t position = given < 0 ? given + length : given;
      if (static_cast<uint64_t>(position) < static_cast<uint64_t>(length)) [[likely]]
        out[i * to_step] = from[i * whole + position * stride];
      else
        bad->note(given, length);
    }
  };
  dense ? each(1, 1) : each(steps.taken, steps.indices);
}

// True if index i is first + i * step for all i < n. Stops after the first block with another one.
template <class Index>
bool are_even(const Index* indices, int64_t stride, int64_t n, int64_t first, int64_t step) {
  constexpr int64_t block = 512;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = std::min(block, n - begin);
    const Index* const some = indices + begin * stride;
    auto expected = static_cast<Index>(first + begin * step);
    Index differences = 0;
    for (int64_t i = 0; i < count; ++i, expected += static_cast<Index>(step))
      differences |= (stride == 1 ? some[i] : some[i * stride]) ^ expected;
    if (differences != 0) return false;
  }
  return true;
}

// dst[i] = src[positions[i]]
template <class T>
void pick_known(char* dst, const char* src, const int64_t* positions, int64_t n) {
  T* __restrict out = reinterpret_cast<T*>(dst);
  const T* __restrict from = reinterpret_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) out[i] = from[positions[i]];
}

using Pick = void (*)(char*, const char*, const char*, int64_t, const Steps&, int64_t, int64_t, BadIndex*);

template <class Index>
Pick pick_of_size(int32_t size) {
  switch (size) {
    case 1: return pick<uint8_t, Index>;
    case 2: return pick<uint16_t, Index>;
    case 4: return pick<uint32_t, Index>;
    default: return pick<uint64_t, Index>;
  }
}

using PickKnown = void (*)(char*, const char*, const int64_t*, int64_t);

PickKnown pick_known_of_size(int32_t size) {
  switch (size) {
    case 1: return pick_known<uint8_t>;
    case 2: return pick_known<uint16_t>;
    case 4: return pick_known<uint32_t>;
    default: return pick_known<uint64_t>;
  }
}

class GatherPrimitive final : public ep_primitive {
 public:
  explicit GatherPrimitive(const ep_primitive_desc& desc)
      : desc_(desc),
        axis_(desc.attributes.gather.axis),
        src_(find_operand(desc, EP_ROLE_SRC)),
        indices_(find_operand(desc, EP_ROLE_INDICES)),
        size_(dtype_size(desc.operands[0].dtype)),
        wide_indices_(desc.operands[indices_].dtype == EP_DTYPE_i64),
        pick_(wide_indices_ ? pick_of_size<int64_t>(size_) : pick_of_size<int32_t>(size_)) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    BadIndex bad;
    switch (desc_.attributes.gather.mode) {
      case EP_GATHER_SLICES: slices(launch, &bad); break;
      case EP_GATHER_ELEMENTS: elements(launch, &bad); break;
      default: coordinates(launch, &bad);
    }
    return bad.answer(launch, indices_, out_fault);
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  // Copies one slice per index. DST's axes are the axes of SRC before the gathered one, the axes of INDICES, and the
  // axes of SRC after the gathered one.
  void slices(const ep_launch& launch, BadIndex* bad) const {
    const OperandShape src = shape(launch.shapes, src_);
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape indices = shape(launch.shapes, indices_);
    Axes outer_src, outer_dst, index_axes, index_dst, inner_src, inner_dst;
    for (int32_t k = 0; k < axis_; ++k) {
      outer_src.add(src.dims[k], src.strides[k]);
      outer_dst.add(src.dims[k], dst.strides[k]);
    }
    for (int32_t k = 0; k < indices.rank; ++k) {
      index_axes.add(indices.dims[k], indices.strides[k]);
      index_dst.add(indices.dims[k], dst.strides[axis_ + k]);
    }
    for (int32_t k = axis_ + 1; k < src.rank; ++k) {
      inner_src.add(src.dims[k], src.strides[k]);
      inner_dst.add(src.dims[k], dst.strides[k - 1 + indices.rank]);
    }
    const int64_t count = index_axes.count();
    const int64_t units = outer_src.count() * count;
    const bool run = inner_src.contiguous() && inner_dst.contiguous();
    const int64_t slice = inner_src.count();
    const char* from = address_of(launch.operands[src_]);
    const char* index_base = address_of(launch.operands[indices_]);
    char* to = address_of(launch.operands[0]);
    if (int64_t first = 0, step = 0; rises_evenly(indices, index_base, src.dims[axis_], &first, &step)) {
      StridedCopy copy;
      copy.rank = dst.rank;
      copy.size = size_;
      std::copy_n(dst.dims, dst.rank, copy.dims);
      std::copy_n(dst.strides, dst.rank, copy.dst_strides);
      std::copy_n(src.strides, axis_, copy.src_strides);
      copy.src_strides[axis_] = step * src.strides[axis_];
      std::copy_n(inner_src.strides, inner_src.rank, copy.src_strides + axis_ + indices.rank);
      return strided_copy(copy, to, from + first * src.strides[axis_] * size_, device->simd, device->threads);
    }
    const ConvertFunction move = move_elements(size_);
    if (slice == 1 && index_axes.contiguous() && index_dst.contiguous()) {
      const int64_t stride = src.strides[axis_];
      const int64_t rows = outer_src.count();
      const auto known = known_positions(rows, count, index_base, stride, src.dims[axis_]);
      if (!known.empty()) {
        const PickKnown pick = pick_known_of_size(size_);
        return pick_rows(rows, count, [&](int64_t row, int64_t begin, int64_t n) {
          pick(to + (outer_dst.offset(row) + begin) * size_, from + outer_src.offset(row) * size_, known.data() + begin,
               n);
        });
      }
      return pick_rows(outer_src.count(), count, [&](int64_t row, int64_t begin, int64_t n) {
        pick_(to + (outer_dst.offset(row) + begin) * size_, from + outer_src.offset(row) * size_,
              index_base + begin * (wide_indices_ ? 8 : 4), n, Steps{.taken = 1, .indices = 1}, stride, src.dims[axis_],
              bad);
      });
    }
    const int64_t index_step = indices.rank > 0 ? index_axes.strides[indices.rank - 1] : 0;
    const int64_t dst_place = indices.rank > 0 ? index_dst.strides[indices.rank - 1] : 0;
    const bool steady = index_axes.contiguous(index_step) && index_dst.contiguous(dst_place);
    const int64_t dst_step = dst_place * size_;
    parallel(device->threads, units * (10 + slice * size_ / 8), [&](int32_t part, int32_t parts) {
      const int64_t end = units * (part + 1) / parts;
      for (int64_t unit = units * part / parts; unit < end;) {
        const int64_t at = unit % count;
        const char* source = from + outer_src.offset(unit / count) * size_;
        char* target = to + (outer_dst.offset(unit / count) + index_dst.offset(at)) * size_;
        int64_t index = index_axes.offset(at);
        // Avoids a division per slice if the indices are adjacent and their slices in DST are equally spaced.
        const int64_t last = steady ? std::min(end, unit - at + count) : unit + 1;
        for (; unit < last; ++unit, index += index_step, target += dst_step) {
          const int64_t position = resolve_index(index_at(index_base, index, wide_indices_), src.dims[axis_], bad);
          if (position < 0) continue;
          const char* slice_source = source + position * src.strides[axis_] * size_;
          if (run)
            copy_bytes(target, slice_source, static_cast<size_t>(slice * size_));
          else
            move_slice(move, inner_dst, inner_src, target, slice_source);
        }
      }
    });
  }

  // Returns the offset for each of `count` indices, if several rows share the indices and all of them are in range;
  // else an empty list.
  std::vector<int64_t> known_positions(int64_t rows, int64_t count, const char* indices, int64_t stride,
                                       int64_t length) const {
    constexpr int64_t few_rows = 4;
    if (rows < few_rows) return {};
    std::vector<int64_t> positions(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t given = index_at(indices, i, wide_indices_);
      const int64_t position = given < 0 ? given + length : given;
      if (position < 0 || position >= length) return {};
      positions[static_cast<size_t>(i)] = position * stride;
    }
    return positions;
  }

  // True if INDICES go through the axis in equal steps, as in a flip. The gather is then a strided copy.
  bool rises_evenly(const OperandShape& indices, const char* base, int64_t length, int64_t* out_first,
                    int64_t* out_step) const {
    if (indices.rank > 1) return false;
    const int64_t n = indices.rank == 0 ? 1 : indices.dims[0], stride = indices.rank == 0 ? 0 : indices.strides[0];
    const auto index = [&](int64_t i) { return index_at(base, i * stride, wide_indices_); };
    const int64_t first = index(0), second = index(n > 1 ? 1 : 0), low = first < 0 ? -length : 0;
    const auto is_inside = [=](int64_t i) { return i >= low && i < low + length; };
    if (!is_inside(first) || !is_inside(second)) return false;
    const int64_t step = second - first;
    if (!is_inside(first + (n - 1) * step)) return false;
    if (!(wide_indices_ ? are_even(reinterpret_cast<const int64_t*>(base), stride, n, first, step)
                        : are_even(reinterpret_cast<const int32_t*>(base), stride, n, first, step)))
      return false;
    *out_first = first - low;
    *out_step = step;
    return true;
  }

  // Calls row(number, begin, n) for parts of `rows` rows of `length` elements.
  template <class Row>
  void pick_rows(int64_t rows, int64_t length, const Row& row) const {
    constexpr int64_t longest = 16384;
    const int64_t pieces = (length + longest - 1) / longest;
    parallel(device->threads, rows * length, [&](int32_t part, int32_t parts) {
      for (int64_t unit = rows * pieces * part / parts; unit < rows * pieces * (part + 1) / parts; ++unit) {
        const int64_t begin = length * (unit % pieces) / pieces;
        row(unit / pieces, begin, length * (unit % pieces + 1) / pieces - begin);
      }
    });
  }

  void move_slice(ConvertFunction move, const Axes& dst, const Axes& src, char* to, const char* from) const {
    constexpr int64_t few = 256;
    if (src.count() >= few) {
      StridedCopy copy;
      copy.rank = src.rank;
      copy.size = size_;
      std::copy_n(src.dims, src.rank, copy.dims);
      std::copy_n(dst.strides, src.rank, copy.dst_strides);
      std::copy_n(src.strides, src.rank, copy.src_strides);
      return strided_copy(copy, to, from, device->simd, 1);
    }
    const int32_t last = src.rank - 1;
    const int64_t length = src.dims[last];
    for (int64_t i = 0; i < src.count(); i += length) {
      move(to + dst.offset(i) * size_, dst.strides[last], from + src.offset(i) * size_, src.strides[last], length);
    }
  }

  void elements(const ep_launch& launch, BadIndex* bad) const {
    constexpr int64_t short_row = 16;
    const OperandShape src = shape(launch.shapes, src_), dst = shape(launch.shapes, 0);
    const OperandShape indices = shape(launch.shapes, indices_);
    SharedAxes axes;
    for (int32_t k = 0; k < indices.rank; ++k)
      axes.add(indices.dims[k], {dst.strides[k], indices.strides[k], k == axis_ ? 0 : src.strides[k]});
    // Rows are the last axis, or the longest one if that is short.
    int64_t length = axes.last_dim();
    Steps steps = axes.last_steps();
    if (axes.rank > 0) {
      const int64_t* const longest = std::max_element(axes.dims, axes.dims + axes.rank);
      const auto row = static_cast<int32_t>(length < short_row ? longest - axes.dims : axes.rank - 1);
      length = axes.dims[row];
      steps = axes.steps[row];
      axes.remove(row);
    }
    const char* from = address_of(launch.operands[src_]);
    const char* index_base = address_of(launch.operands[indices_]);
    char* to = address_of(launch.operands[0]);
    pick_rows(axes.count(), length, [&](int64_t row, int64_t begin, int64_t n) {
      const Steps first = axes.offset(row) + steps * begin;
      pick_(to + first.taken * size_, from + first.whole * size_, index_base + first.indices * (wide_indices_ ? 8 : 4),
            n, steps, src.strides[axis_], src.dims[axis_], bad);
    });
  }

  // Copies one slice of SRC for each position.
  void coordinates(const ep_launch& launch, BadIndex* bad) const {
    const OperandShape src = shape(launch.shapes, src_);
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape indices = shape(launch.shapes, indices_);
    const Coordinates named(src, indices, axis_);
    const int32_t places = indices.rank - 1;
    const Axes outer = axes_before(dst, places);
    const Axes inner_dst = axes_from(dst, places);
    const Axes inner_src = axes_from(src, src.rank - inner_dst.rank);
    const int64_t slice = inner_src.count();
    const bool run = inner_src.contiguous() && inner_dst.contiguous();
    const char* from = address_of(launch.operands[src_]);
    const char* index_base = address_of(launch.operands[indices_]);
    char* to = address_of(launch.operands[0]);
    const ConvertFunction move = move_elements(size_);
    const int64_t count = named.places();
    parallel(device->threads, count * (10 + slice * size_ / 8), [&](int32_t part, int32_t parts) {
      for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        int64_t first = 0;
        const int64_t offset = named.offset(index_base, wide_indices_, i, bad, &first);
        if (offset < 0) continue;
        const char* source = from + offset * size_;
        char* target = to + outer.offset(i) * size_;
        if (run)
          copy_bytes(target, source, static_cast<size_t>(slice * size_));
        else
          move_slice(move, inner_dst, inner_src, target, source);
      }
    });
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  int32_t src_;
  int32_t indices_;
  int32_t size_;
  bool wide_indices_;
  Pick pick_;
};

}  // namespace

Refusal Gather::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  const ep_gather_attributes& attributes = desc.attributes.gather;
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || src == nullptr || indices == nullptr) {
    return Refusal::because("its operands are not DST, SRC and INDICES");
  }
  if (indices->dtype != EP_DTYPE_i32 && indices->dtype != EP_DTYPE_i64)
    return Refusal::because("indices of %s", dtype_name(indices->dtype));
  if (dtype_size(src->dtype) == 0 || desc.operands[0].dtype != src->dtype)
    return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (attributes.axis < 0 || attributes.axis >= src->rank)
    return Refusal::because("axis %d of rank %d", attributes.axis, src->rank);
  if (attributes.mode == EP_GATHER_COORDINATES) {
    if (Refusal refusal = why_no_coordinates(*src, *indices, desc.operands[0], attributes.axis)) return refusal;
    info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
    return {};
  }
  const bool slices = attributes.mode == EP_GATHER_SLICES;
  if (!slices && attributes.mode != EP_GATHER_ELEMENTS) return Refusal::because("mode %d", attributes.mode);
  const int32_t rank = slices ? src->rank - 1 + indices->rank : indices->rank;
  if (desc.operands[0].rank != rank)
    return Refusal::because("a result of rank %d, not %d", desc.operands[0].rank, rank);
  if (!slices && src->rank != rank) return Refusal::because("indices of rank %d", rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Gather::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<GatherPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
