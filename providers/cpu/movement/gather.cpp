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
#include "providers/cpu/movement/tile.h"
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

// dst[i] = src[i * step + index[i] * stride] for i < n. Elements with an index out of range are not written.
template <class T, class Index>
void pick(char* dst, const char* src, const char* index, int64_t n, int64_t step, int64_t stride, int64_t length,
          BadIndex* bad) {
  T* out = reinterpret_cast<T*>(dst);
  const T* from = reinterpret_cast<const T*>(src);
  const auto* indices = reinterpret_cast<const Index*>(index);
  if (step == 0 && stride == 1) return pick_from_row(out, from, indices, n, length, bad);
  for (int64_t i = 0; i < n; ++i) {
    const auto given = static_cast<int64_t>(indices[i]);
    const int64_t position = given < 0 ? given + length : given;
    if (static_cast<uint64_t>(position) < static_cast<uint64_t>(length)) [[likely]]
      out[i] = from[i * step + position * stride];
    else
      bad->note(given, length);
  }
}

// dst[i] = src[positions[i]]
template <class T>
void pick_known(char* dst, const char* src, const int64_t* positions, int64_t n) {
  T* __restrict out = reinterpret_cast<T*>(dst);
  const T* __restrict from = reinterpret_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) out[i] = from[positions[i]];
}

using Pick = void (*)(char*, const char*, const char*, int64_t, int64_t, int64_t, int64_t, BadIndex*);

template <class Index>
Pick pick_of_size(int32_t size) {
  switch (size) {
    case 1: return pick<uint8_t, Index>;
    case 2: return pick<uint16_t, Index>;
    case 4: return pick<uint32_t, Index>;
    case 8: return pick<uint64_t, Index>;
    default: return nullptr;
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
    const ConvertFunction move = move_elements(size_);
    if (slice == 1 && pick_ != nullptr && index_axes.contiguous() && index_dst.contiguous()) {
      const int64_t stride = src.strides[axis_];
      const int64_t rows = outer_src.count();
      const auto known = known_positions(rows, count, index_base, stride, src.dims[axis_]);
      if (!known.empty()) {
        const PickKnown pick = pick_known_of_size(size_);
        const ReverseFunction reverse = is_reversed(known) ? reverse_function(device->simd, size_) : nullptr;
        return pick_rows(rows, count, [&](int64_t row, int64_t begin, int64_t n) {
          char* target = to + (outer_dst.offset(row) + begin) * size_;
          const char* source = from + outer_src.offset(row) * size_;
          if (reverse != nullptr)
            reverse(target, source + known[static_cast<size_t>(begin)] * size_, n);
          else
            pick(target, source, known.data() + begin, n);
        });
      }
      return pick_rows(outer_src.count(), count, [&](int64_t row, int64_t begin, int64_t n) {
        pick_(to + (outer_dst.offset(row) + begin) * size_, from + outer_src.offset(row) * size_,
              index_base + begin * (wide_indices_ ? 8 : 4), n, 0, stride, src.dims[axis_], bad);
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

  static bool is_reversed(const std::vector<int64_t>& positions) {
    for (size_t i = 1; i < positions.size(); ++i) {
      if (positions[i] != positions[i - 1] - 1) return false;
    }
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
    const int32_t last = src.rank - 1;
    const int64_t length = src.dims[last];
    for (int64_t i = 0; i < src.count(); i += length) {
      move(to + dst.offset(i) * size_, dst.strides[last], from + src.offset(i) * size_, src.strides[last], length);
    }
  }

  void elements(const ep_launch& launch, BadIndex* bad) const {
    const OperandShape src = shape(launch.shapes, src_);
    const Axes dst_axes = axes_of(shape(launch.shapes, 0), ~0U, true);
    const Axes index_axes = axes_of(shape(launch.shapes, indices_), ~0U, true);
    Axes walk = axes_of(src, ~0U, true);
    for (int32_t k = 0; k < walk.rank; ++k) walk.dims[k] = index_axes.dims[k];
    const int64_t length = src.dims[axis_];
    const int64_t stride = src.strides[axis_];
    walk.strides[axis_] = 0;
    const char* from = address_of(launch.operands[src_]);
    const char* index_base = address_of(launch.operands[indices_]);
    char* to = address_of(launch.operands[0]);
    const int64_t count = index_axes.count();
    const int32_t last = index_axes.rank - 1;
    if (pick_ != nullptr && index_axes.strides[last] == 1 && dst_axes.strides[last] == 1) {
      const int64_t row_length = index_axes.dims[last];
      return pick_rows(count / row_length, row_length, [&](int64_t row, int64_t begin, int64_t n) {
        const int64_t first = row * row_length + begin;
        pick_(to + dst_axes.offset(first) * size_, from + walk.offset(first) * size_,
              index_base + index_axes.offset(first) * (wide_indices_ ? 8 : 4), n, walk.strides[last], stride, length,
              bad);
      });
    }
    const ConvertFunction move = move_elements(size_);
    parallel(device->threads, count * 15, [&](int32_t part, int32_t parts) {
      for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        const int64_t position = resolve_index(index_at(index_base, index_axes.offset(i), wide_indices_), length, bad);
        if (position < 0) continue;
        move(to + dst_axes.offset(i) * size_, 1, from + (walk.offset(i) + position * stride) * size_, 1, 1);
      }
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
