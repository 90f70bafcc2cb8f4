// one_hot: fills with launch scalar 0, then writes launch scalar 1 where an element of SRC points.
#include <algorithm>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

class OneHotPrimitive final : public ep_primitive {
 public:
  OneHotPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        axis_(desc.attributes.one_hot.axis),
        wide_indices_(desc.operands[1].dtype == EP_DTYPE_i64),
        threads_(on.threads),
        fill_(vector_fill(on.simd, dtype_size(desc.operands[0].dtype))) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 2) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "one_hot has no launch scalars 0 and 1.");
    }
    const int32_t dtype = desc_.operands[0].dtype;
    const ConvertFunction narrow_to = narrow(scalar_type(dtype), dtype);
    alignas(8) char values[2][8] = {};
    for (int i = 0; i < 2; ++i) narrow_to(values[i], 1, &launch.scalars[i].value, 1, 1);
    switch (dtype_size(dtype)) {
      case 1: run<uint8_t>(launch, values); break;
      case 2: run<uint16_t>(launch, values); break;
      case 4: run<uint32_t>(launch, values); break;
      default: run<uint64_t>(launch, values);
    }
    return EP_STATUS_OK;
  }

 private:
  // The member of ep_scalar that holds a value of `dtype`.
  static int32_t scalar_type(int32_t dtype) {
    switch (dtype_class(dtype)) {
      case DTypeClass::FLOAT: return EP_DTYPE_f64;
      case DTypeClass::INT: return EP_DTYPE_i64;
      default: return EP_DTYPE_u64;
    }
  }

  template <class U>
  void run(const ep_launch& launch, const char (*values)[8]) const {
    const U off = *reinterpret_cast<const U*>(values[0]);
    const U on = *reinterpret_cast<const U*>(values[1]);
    const Lines dst(desc_, launch, 0, axis_);
    const Axes src = axes_of(shape_of(desc_.operands[1], launch.shapes, 1), ~0U, true);
    const char* const indices = address_of(launch.operands[1]);
    const int64_t lines = dst.outer.count();
    const int64_t n = dst.length;
    const int32_t lane = dst.outer.rank - 1;
    // If lines are adjacent, one call fills a row across all lines.
    const bool side_by_side = lane >= 0 && dst.stride != 1 && dst.outer.strides[lane] == 1;
    const int64_t width = side_by_side ? dst.outer.dims[lane] : 1;
    parallel(threads_, lines * n / 4 + lines * 8, [&](int32_t part, int32_t parts) {
      const int64_t groups = lines / width;
      for (int64_t group = groups * part / parts; group < groups * (part + 1) / parts; ++group) {
        U* const first = reinterpret_cast<U*>(dst.line(group * width));
        // A line of its own, or a row across all lines, is one run.
        const bool run = !side_by_side && dst.stride == 1;
        const int64_t runs = run ? 1 : n;
        const int64_t length = run ? n : width;
        for (int64_t i = 0; i < runs; ++i) {
          if (fill_ != nullptr)
            fill_(first + i * dst.stride, &off, length);
          else
            std::fill_n(first + i * dst.stride, length, off);
        }
        for (int64_t l = 0; l < width; ++l) {
          const int64_t line = group * width + l;
          const int64_t given = index_at(indices, src.offset(line), wide_indices_);
          const int64_t position = given < 0 ? given + n : given;
          if (position >= 0 && position < n) reinterpret_cast<U*>(dst.line(line))[position * dst.stride] = on;
        }
      }
    });
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  bool wide_indices_;
  int32_t threads_;
  FillFunction fill_;  // NULL on the baseline
};

}  // namespace

Refusal OneHot::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  if (wide_dtype(dst.dtype) == 0) return Refusal::because("a result of %s", dtype_name(dst.dtype));
  if (src.dtype != EP_DTYPE_i32 && src.dtype != EP_DTYPE_i64)
    return Refusal::because("indices of %s", dtype_name(src.dtype));
  const int32_t axis = desc.attributes.one_hot.axis;
  if (axis < 0 || axis >= dst.rank || dst.rank != src.rank + 1)
    return Refusal::because("axis %d of rank %d", axis, dst.rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal OneHot::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<OneHotPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
