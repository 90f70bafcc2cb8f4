// pad: adds a border of a constant, of mirrored elements or of repeated edge elements.
//
// Axes without a border are merged with their neighbours, so that a row of the result is as long as possible. A row is
// a border, elements of one row of the source, and a border. If the rows of the source are not contiguous, the source
// is copied into the result first, and the borders are then copied from there.
#include <algorithm>
#include <cstring>
#include <utility>

#include "providers/cpu/elementwise/scalar.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t most_of_row = 16384;  // elements of a row that one thread writes at a time

// One axis: its lengths in both operands, its strides in elements, and the length of the border before it.
struct PadAxis {
  int64_t dst, src;
  int64_t to, from;
  int64_t low;
  bool padded() const { return dst != src; }
  // True if position `index` of the result is outside the source.
  bool in_border(int64_t index) const { return index < low || index >= low + src; }
};

// The axes of one launch, merged where both operands walk them alike.
struct PadShape {
  explicit PadShape(int32_t pad_mode) : mode(pad_mode) {}

  int32_t mode;
  int32_t rank = 0;
  PadAxis axes[EP_MAX_RANK];
  int64_t chunk = 1;      // elements of the axes below the last one, which have no border and no gaps
  bool has_gaps = false;  // the elements of a row are not contiguous in the source

  // True if `axis` has no border and continues the axis before it in the result.
  static bool continues(const PadAxis& before, const PadAxis& axis) {
    return !axis.padded() && before.to == axis.dst * axis.to;
  }
  static bool continues_in_source(const PadAxis& before, const PadAxis& axis) {
    return before.from == axis.src * axis.from;
  }

  // Adds an axis below the others. A constant border is a border of the merged axis too; another border is not.
  void add(const PadAxis& axis) {
    if (axis.dst == 1 && axis.src == 1) return;
    if (rank > 0) {
      PadAxis& before = axes[rank - 1];
      if (continues(before, axis) && continues_in_source(before, axis) &&
          (mode == EP_PAD_CONSTANT || !before.padded())) {
        before = {before.dst * axis.dst, before.src * axis.src, axis.to, axis.from, before.low * axis.dst};
        return;
      }
    }
    axes[rank++] = axis;
  }

  // Completes the shape: the last axis becomes a chunk of the axis before it, if it continues that axis in the result.
  void finish() {
    if (rank == 0) axes[rank++] = {1, 1, 1, 1, 0};
    has_gaps = axes[rank - 1].from != 1;
    if (rank == 1 || axes[rank - 1].to != 1 || !continues(axes[rank - 2], axes[rank - 1])) return;
    chunk = axes[rank - 1].dst;
    --rank;
    has_gaps |= axes[rank - 1].from != chunk;
  }

  // The position in the source of position `position` of the result, or -1 if the result is the constant there.
  int64_t source_of(const PadAxis& axis, int64_t position) const {
    const int64_t at = position - axis.low;
    if (at >= 0 && at < axis.src) return at;
    switch (mode) {
      case EP_PAD_REFLECT: return at < 0 ? -at : 2 * (axis.src - 1) - at;
      case EP_PAD_EDGE: return std::clamp<int64_t>(at, 0, axis.src - 1);
      default: return -1;
    }
  }
};

// Iterates over the planes of the result: all axes but the last two.
class PadPlanes {
 public:
  PadPlanes(const PadShape& shape, int64_t plane) : shape_(shape), axes_(shape.rank - 2) {
    for (int32_t axis = axes_ - 1; axis >= 0; --axis) {
      place(axis, plane % shape.axes[axis].dst);
      plane /= shape.axes[axis].dst;
    }
  }
  // The offsets of the plane in both operands, in elements.
  int64_t to() const { return to_; }
  int64_t from() const { return from_; }
  bool all_constant() const { return outside_ > 0; }
  bool in_border() const { return borders_ > 0; }
  void next() {
    for (int32_t axis = axes_ - 1; axis >= 0; --axis) {
      const int64_t next = index_[axis] + 1;
      place(axis, next < shape_.axes[axis].dst ? next : 0);
      if (index_[axis] != 0) return;
    }
  }

 private:
  void place(int32_t axis, int64_t index) {
    const PadAxis& at = shape_.axes[axis];
    const int64_t source = shape_.source_of(at, index);
    const bool outside = source < 0, border = at.in_border(index);
    const int64_t from = outside ? 0 : source * at.from;
    to_ += (index - index_[axis]) * at.to;
    from_ += from - from_of_[axis];
    outside_ += (outside ? 1 : 0) - (outside_of_[axis] ? 1 : 0);
    borders_ += (border ? 1 : 0) - (border_of_[axis] ? 1 : 0);
    index_[axis] = index;
    from_of_[axis] = from;
    outside_of_[axis] = outside;
    border_of_[axis] = border;
  }

  const PadShape& shape_;
  int32_t axes_;
  int64_t to_ = 0, from_ = 0;
  int32_t outside_ = 0, borders_ = 0;
  int64_t index_[EP_MAX_RANK] = {}, from_of_[EP_MAX_RANK] = {};
  bool outside_of_[EP_MAX_RANK] = {}, border_of_[EP_MAX_RANK] = {};
};

// Copies n elements. Rows of up to 128 bytes are copied without a call.
template <class T>
void copy_row(T* to, const T* from, int64_t n) {
  struct Some {
    char bytes[16];
  };
  constexpr int64_t step = 16 / sizeof(T);
  if (n < step) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  } else if (n <= 8 * step) {
    const auto copy = [=](int64_t i) {
      Some some;
      std::memcpy(&some, from + i, sizeof some);
      std::memcpy(to + i, &some, sizeof some);
    };
    for (int64_t i = 0; i + step < n; i += step) copy(i);
    copy(n - step);
  } else {
    copy_bytes(to, from, static_cast<size_t>(n) * sizeof(T));
  }
}

// Writes rows. `copied`: the elements between the borders are in the result already.
template <class T>
class PadWriter {
 public:
  PadWriter(const PadShape& shape, T value, bool copied, SimdLevel level)
      : shape_(shape),
        axis_(shape.axes[shape.rank - 1]),
        value_(value),
        copied_(copied),
        fill_(axis_.to == 1 ? vector_fill(level, sizeof(T)) : nullptr) {}

  // Writes positions [begin, end) of rows [row, past) of a plane.
  void write(T* to, const T* from, const PadPlanes& plane, int64_t row, int64_t past, int64_t begin,
             int64_t end) const {
    const Cut cut = cut_of(begin, end);
    if (shape_.rank == 1) return write_row(to, from, plane.in_border(), cut);
    const PadAxis& rows = shape_.axes[shape_.rank - 2];
    for (; row < past; ++row) {
      const int64_t source = plane.all_constant() ? -1 : shape_.source_of(rows, row);
      if (source < 0)
        constant(to + row * rows.to, begin, end);
      else
        write_row(to + row * rows.to, from + source * rows.from, plane.in_border() || rows.in_border(row), cut);
    }
  }

 private:
  // Positions of a row: a border from `begin` on, elements of the source from `first` on, a border from `past` on; and
  // the offsets in the source of the first element of each.
  struct Cut {
    int64_t begin, first, past, end;
    int64_t before, within, after;
  };
  Cut cut_of(int64_t begin, int64_t end) const {
    const int64_t first = std::clamp(axis_.low, begin, end), past = std::clamp(axis_.low + axis_.src, begin, end);
    const auto source = [&](int64_t position) { return shape_.source_of(axis_, position) * axis_.from; };
    return {begin, first, past, end, source(begin), (first - axis_.low) * axis_.from, source(past)};
  }

  void write_row(T* to, const T* from, bool in_border, const Cut& cut) const {
    border(to, from + cut.before, cut.begin, cut.first);
    if (!copied_ || in_border) {
      const T* const source = from + cut.within;
      const bool single = shape_.chunk == 1;
      const int64_t to_step = single ? axis_.to : 1, from_step = single ? axis_.from : 1;
      const int64_t n = (cut.past - cut.first) * shape_.chunk;
      T* const target = to + cut.first * axis_.to;
      if (to_step == 1 && from_step == 1) {
        copy_row(target, source, n);
      } else {
        for (int64_t i = 0; i < n; ++i) target[i * to_step] = source[i * from_step];
      }
    }
    border(to, from + cut.after, cut.past, cut.end);
  }

  void constant(T* to, int64_t begin, int64_t end) const {
    constexpr int64_t few = 16;
    if (fill_ != nullptr && end - begin > few) return fill_(to + begin, &value_, end - begin);
    for (int64_t i = begin; i < end; ++i) to[i * axis_.to] = value_;
  }

  // Writes the positions [begin, end) of a border. `source` is the element that position `begin` copies; a constant
  // border does not read it.
  void border(T* to, const T* source, int64_t begin, int64_t end) const {
    if (shape_.mode == EP_PAD_CONSTANT) return constant(to, begin, end);
    const int64_t step = shape_.mode == EP_PAD_REFLECT ? -axis_.from : 0;
    for (int64_t i = begin; i < end; ++i, source += step) {
      if (shape_.chunk == 1)
        to[i * axis_.to] = *source;
      else
        copy_row(to + i * axis_.to, source, shape_.chunk);
    }
  }

  const PadShape& shape_;
  const PadAxis& axis_;
  T value_;
  bool copied_;
  FillFunction fill_;
};

class PadPrimitive final : public ep_primitive {
 public:
  explicit PadPrimitive(const ep_primitive_desc& desc) : desc_(desc), size_(dtype_size(desc.operands[0].dtype)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    alignas(8) char value[8] = {};
    if (desc_.attributes.pad.mode == EP_PAD_CONSTANT) {
      if (launch.scalar_count < 1)
        return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "pad has no launch scalar 0.");
      write_scalar(launch.scalars[0], desc_.operands[0].dtype, value);
    }
    switch (size_) {
      case 1: run<uint8_t>(launch, value); break;
      case 2: run<uint16_t>(launch, value); break;
      case 4: run<uint32_t>(launch, value); break;
      default: run<uint64_t>(launch, value); break;
    }
    return EP_STATUS_OK;
  }

 private:
  template <class T>
  void run(const ep_launch& launch, const char* constant) const {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    T* const to = reinterpret_cast<T*>(address_of(launch.operands[0]));
    const T* from = reinterpret_cast<const T*>(address_of(launch.operands[1]));
    PadShape shape = shape_with(dst, src.dims, src.strides);
    const bool copied = shape.has_gaps;
    if (copied) {
      from = copy_into(dst, src, to, from);
      shape = shape_with(dst, src.dims, dst.strides);
    }
    const PadWriter<T> writer(shape, *reinterpret_cast<const T*>(constant), copied, device->simd);
    const int64_t rows = shape.rank > 1 ? shape.axes[shape.rank - 2].dst : 1;
    int64_t planes = 1;
    for (int32_t axis = 0; axis < shape.rank - 2; ++axis) planes *= shape.axes[axis].dst;
    const int64_t length = shape.axes[shape.rank - 1].dst;
    const int64_t pieces = (length * shape.chunk + most_of_row - 1) / most_of_row;
    parallel(device->threads, planes * rows * (length * shape.chunk * size_ / 8 + 4), [&](int32_t part, int32_t parts) {
      const int64_t units = planes * rows * pieces, end = units * (part + 1) / parts;
      int64_t unit = units * part / parts;
      PadPlanes plane(shape, unit / pieces / rows);
      while (unit < end) {
        const int64_t row = unit / pieces % rows, piece = unit % pieces;
        const int64_t count = pieces > 1 ? 1 : std::min(rows - row, end - unit);
        writer.write(to + plane.to(), from + plane.from(), plane, row, row + count, length * piece / pieces,
                     length * (piece + 1) / pieces);
        unit += count;
        if (piece + 1 == pieces && row + count == rows) plane.next();
      }
    });
  }

  PadShape shape_with(const OperandShape& dst, const int64_t* src_dims, const int64_t* src_strides) const {
    PadAxis axes[EP_MAX_RANK];
    for (int32_t axis = 0; axis < dst.rank; ++axis) {
      axes[axis] = {dst.dims[axis], src_dims[axis], dst.strides[axis], src_strides[axis],
                    desc_.attributes.pad.low[axis]};
    }
    for (int32_t axis = 1; axis < dst.rank; ++axis) {
      for (int32_t i = axis; i > 0 && axes[i - 1].to < axes[i].to; --i) std::swap(axes[i - 1], axes[i]);
    }
    PadShape shape(desc_.attributes.pad.mode);
    for (int32_t axis = 0; axis < dst.rank; ++axis) shape.add(axes[axis]);
    shape.finish();
    return shape;
  }

  // Copies the source into the result, and returns the address of its first element there.
  template <class T>
  const T* copy_into(const OperandShape& dst, const OperandShape& src, T* to, const T* from) const {
    for (int32_t axis = 0; axis < dst.rank; ++axis) to += desc_.attributes.pad.low[axis] * dst.strides[axis];
    copy_operand(size_, {src.dims, dst.strides, dst.rank}, reinterpret_cast<char*>(to), src,
                 reinterpret_cast<const char*>(from), device->simd, device->threads);
    return to;
  }

  ep_primitive_desc desc_;
  int32_t size_;
};

}  // namespace

Refusal Pad::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  const int32_t mode = desc.attributes.pad.mode;
  if (mode != EP_PAD_CONSTANT && mode != EP_PAD_REFLECT && mode != EP_PAD_EDGE)
    return Refusal::because("mode %d", mode);
  if (dtype_size(dst.dtype) == 0 || dst.dtype != src.dtype)
    return Refusal::because("a source of %s", dtype_name(src.dtype));
  if (dst.rank != src.rank || dst.rank < 1) return Refusal::because("ranks %d and %d", dst.rank, src.rank);
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (desc.attributes.pad.low[axis] < 0 || desc.attributes.pad.high[axis] < 0)
      return Refusal::because("a negative border of axis %d", axis);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Pad::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<PadPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
