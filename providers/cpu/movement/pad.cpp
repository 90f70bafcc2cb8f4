// pad: adds a border of a constant, of mirrored elements or of repeated edge elements.
#include <algorithm>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/elementwise/scalar.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

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
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    const int32_t last = dst.rank - 1;
    int64_t rows = 1;
    for (int32_t axis = 0; axis < last; ++axis) rows *= dst.dims[axis];
    parallel(device->threads, rows * dst.dims[last] * size_ / 4, [&](int32_t part, int32_t parts) {
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        pad_row(dst, src, row, address_of(launch.operands[0]), address_of(launch.operands[1]), value);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // Returns the source position for result position `position`, or -1 if the result is the constant there.
  int64_t source_of(int64_t position, int64_t low, int64_t length) const {
    const int64_t at = position - low;
    if (at >= 0 && at < length) return at;
    switch (desc_.attributes.pad.mode) {
      case EP_PAD_REFLECT: return at < 0 ? -at : 2 * (length - 1) - at;
      case EP_PAD_EDGE: return std::clamp<int64_t>(at, 0, length - 1);
      default: return -1;
    }
  }

  void pad_row(const OperandShape& dst, const OperandShape& src, int64_t row, char* to, const char* from,
               const char* value) const {
    const int32_t last = dst.rank - 1;
    const ConvertFunction move = move_elements(size_);
    bool outside = false;
    for (int32_t axis = last - 1; axis >= 0; --axis) {
      const int64_t index = row % dst.dims[axis];
      row /= dst.dims[axis];
      to += index * dst.strides[axis] * size_;
      const int64_t at = source_of(index, desc_.attributes.pad.low[axis], src.dims[axis]);
      outside = outside || at < 0;
      from += std::max<int64_t>(at, 0) * src.strides[axis] * size_;
    }
    const int64_t low = desc_.attributes.pad.low[last];
    const int64_t length = src.dims[last];
    const int64_t step = dst.strides[last];
    const FillFunction fill = step == 1 ? vector_fill(device->simd, size_) : nullptr;
    const auto constant = [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      if (fill != nullptr) return fill(to + begin * size_, value, end - begin);
      move(to + begin * step * size_, step, value, 0, end - begin);
    };
    if (outside) return constant(0, dst.dims[last]);
    const auto border = [&](int64_t begin, int64_t end) {
      if (desc_.attributes.pad.mode == EP_PAD_CONSTANT) return constant(begin, end);
      for (int64_t i = begin; i < end; ++i) {
        move(to + i * step * size_, 1, from + source_of(i, low, length) * src.strides[last] * size_, 1, 1);
      }
    };
    border(0, low);
    move(to + low * step * size_, step, from, src.strides[last], length);
    border(low + length, dst.dims[last]);
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
