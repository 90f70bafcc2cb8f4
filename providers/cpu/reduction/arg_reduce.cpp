// arg_reduce: the position of the greatest or least element along an axis.
#include <limits>

#include "providers/cpu/reduction/kernel.h"
#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/rows/row_primitive.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

ArgReduceKernels kernels_of(SimdLevel level, bool greatest, int32_t dtype) {
  const ArgReduceKernels floats = arg_reduce_kernels(level, greatest, dtype);
  return floats.row != nullptr ? floats : integer_arg_reduce_kernels(level, greatest, dtype);
}

class ArgReducePrimitive final : public RowPrimitive {
 public:
  ArgReducePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(desc.operands[1].dtype, on.simd),
        mask_(1U << desc.attributes.arg_reduce.axis),
        last_(desc.attributes.arg_reduce.last != 0),
        stored_(kernels_of(on.simd, is_greatest(desc), desc.operands[1].dtype)),
        computed_(kernels_of(on.simd, is_greatest(desc), format_.compute)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape src = shape(launch.shapes, 1);
    const Axes row = axes_of(src, mask_, true);
    const Axes src_outer = axes_of(src, mask_, false);
    const Axes dst_outer = axes_of(shape(launch.shapes, 0), mask_, false);
    const int64_t rows = src_outer.count();
    const int64_t n = row.count();
    auto* dst = reinterpret_cast<int64_t*>(address_of(launch.operands[0]));
    if (n == 1 && dst_outer.contiguous()) {
      parallel(device->threads, rows, [&](int32_t part, int32_t parts) {
        std::fill(dst + rows * part / parts, dst + rows * (part + 1) / parts, int64_t{0});
      });
      return EP_STATUS_OK;
    }
    if (stored_.columns != nullptr && has_columns(row, src_outer, dst_outer)) {
      columns(launch, row, src_outer, dst_outer, dst);
      return EP_STATUS_OK;
    }
    const bool in_place = stored_.row != nullptr && row.contiguous();
    const int32_t last = src_outer.rank - 1;
    const int64_t line = last < 0 ? 1 : src_outer.dims[last];
    const int64_t dst_stride = last < 0 ? 1 : dst_outer.strides[last];
    const int64_t src_stride = last < 0 ? n : src_outer.strides[last];
    // Short rows without gaps are converted together; narrow floats are few steps of a vector each.
    const bool together =
        n <= few && row.contiguous() && src_stride == n && !format_.same && is_floating(format_.dtype);
    for_rows(launch, rows, rows * n / 8 + rows, [&](int64_t begin, int64_t end, char* buffer) {
      int64_t found[most_arg_columns];
      for (int64_t i = begin; i < end;) {
        const int64_t count = std::min({end - i, line - i % line, most_arg_columns});
        const char* const from = address_of(launch.operands[1]) + src_outer.offset(i) * format_.size;
        int64_t* const to = dst + dst_outer.offset(i);
        int64_t* const positions = dst_stride == 1 ? to : found;
        if (n == 1) {
          std::fill_n(positions, count, int64_t{0});
        } else if (together) {
          format_.read(buffer, 1, from, 1, count * n);
          computed_.rows(positions, buffer, n, count, n, last_);
        } else if (in_place) {
          stored_.rows(positions, from, src_stride, count, n, last_);
        } else {
          for (int64_t k = 0; k < count; ++k) {
            positions[k] = computed_.row(format_.fetch(from + k * src_stride * format_.size, row, buffer), n, last_);
          }
        }
        for (int64_t k = 0; k < (positions == to ? 0 : count); ++k) to[k * dst_stride] = positions[k];
        i += count;
      }
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override {
    return shape(shapes, 1).dims[desc_.attributes.arg_reduce.axis];
  }

 private:
  static constexpr int64_t width = most_arg_columns;  // columns per thread and call
  static constexpr int64_t few = shortest_row - 1;    // elements of a row that is too short for a vector
  static_assert(few * most_arg_columns <= stack_row);

  // True if memory neighbours belong to different results, which are adjacent too.
  static bool has_columns(const Axes& row, const Axes& src, const Axes& dst) {
    const int32_t last = src.rank - 1;
    return last >= 0 && src.strides[last] == 1 && dst.strides[last] == 1 && src.dims[last] > 1 && row.strides[0] > 1 &&
           row.dims[0] <= std::numeric_limits<int32_t>::max();
  }

  static bool is_greatest(const ep_primitive_desc& desc) { return desc.attributes.arg_reduce.op == EP_REDUCE_max; }

  void columns(const ep_launch& launch, const Axes& row, const Axes& src, const Axes& dst, int64_t* to) const {
    const char* const from = address_of(launch.operands[1]);
    const int64_t length = src.dims[src.rank - 1];
    const int64_t blocks = (length + width - 1) / width;
    const int64_t units = src.count() / length * blocks;
    parallel(device->threads, src.count() * row.dims[0] / 8, [&](int32_t part, int32_t parts) {
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t start = unit % blocks * width;
        const int64_t first = unit / blocks * length + start;
        stored_.columns(to + dst.offset(first), from + src.offset(first) * format_.size, row.strides[0], row.dims[0],
                        std::min(width, length - start), last_);
      }
    });
  }

  RowFormat format_;
  uint32_t mask_;
  bool last_;
  ArgReduceKernels stored_;    // for stored elements
  ArgReduceKernels computed_;  // for elements of the compute type
};

}  // namespace

Refusal ArgReduce::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_arg_reduce_attributes& attributes = desc.attributes.arg_reduce;
  const ep_operand_desc& src = desc.operands[1];
  if (attributes.op != EP_REDUCE_max && attributes.op != EP_REDUCE_min) return Refusal::because("op %d", attributes.op);
  if (desc.operands[0].dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(desc.operands[0].dtype));
  if (wide_dtype(src.dtype) == 0 || is_scalar(src)) return Refusal::because("a source of %s", dtype_name(src.dtype));
  if (attributes.axis < 0 || attributes.axis >= src.rank)
    return Refusal::because("axis %d of rank %d", attributes.axis, src.rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal ArgReduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<ArgReducePrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
