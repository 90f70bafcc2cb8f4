// arg_reduce: the position of the greatest or least element along an axis.
#include <limits>

#include "providers/cpu/reduction/kernel.h"
#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/rows/row_primitive.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

// True if `x` replaces `best`. NaN replaces every number.
template <bool greatest, class T>
bool better(T x, T best, bool last) {
  if (scalar::ep_isnan(best)) return last && scalar::ep_isnan(x);
  if (scalar::ep_isnan(x)) return true;
  if (x == best) return last;
  return greatest ? x > best : x < best;
}

template <bool greatest, class T>
int64_t position(const void* row, int64_t n, bool last) {
  const T* values = static_cast<const T*>(row);
  int64_t found = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (better<greatest>(values[i], values[found], last)) found = i;
  }
  return found;
}

using PositionFunction = int64_t (*)(const void*, int64_t, bool);

template <bool greatest>
PositionFunction position_function(int32_t compute) {
  switch (compute) {
    case EP_DTYPE_u64: return position<greatest, uint64_t>;
    default: return position<greatest, int64_t>;
  }
}

class ArgReducePrimitive final : public RowPrimitive {
 public:
  ArgReducePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(desc.operands[1].dtype, on.simd),
        mask_(1U << desc.attributes.arg_reduce.axis),
        last_(desc.attributes.arg_reduce.last != 0),
        position_(desc.attributes.arg_reduce.op == EP_REDUCE_max ? position_function<true>(format_.compute)
                                                                 : position_function<false>(format_.compute)),
        f32_(arg_reduce_kernels<float>(on.simd, desc.attributes.arg_reduce.op == EP_REDUCE_max)),
        f64_(arg_reduce_kernels<double>(on.simd, desc.attributes.arg_reduce.op == EP_REDUCE_max)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape src = shape(launch.shapes, 1);
    const Axes row = axes_of(src, mask_, true);
    const Axes src_outer = axes_of(src, mask_, false);
    const Axes dst_outer = axes_of(shape(launch.shapes, 0), mask_, false);
    const int64_t rows = src_outer.count();
    const int64_t n = row.count();
    auto* dst = reinterpret_cast<int64_t*>(address_of(launch.operands[0]));
    const bool floats = format_.compute == EP_DTYPE_f32 || format_.compute == EP_DTYPE_f64;
    if (floats && format_.same && has_columns(row, src_outer, dst_outer)) {
      if (format_.compute == EP_DTYPE_f32)
        columns(launch, f32_, row, src_outer, dst_outer, dst);
      else
        columns(launch, f64_, row, src_outer, dst_outer, dst);
      return EP_STATUS_OK;
    }
    for_rows(launch, rows, floats ? rows * n / 8 : rows * n, [&](int64_t begin, int64_t end, char* buffer) {
      for (int64_t i = begin; i < end; ++i) {
        const void* values =
            format_.fetch(address_of(launch.operands[1]) + src_outer.offset(i) * format_.size, row, buffer);
        dst[dst_outer.offset(i)] =
            format_.compute == EP_DTYPE_f32   ? f32_.row(static_cast<const float*>(values), n, last_)
            : format_.compute == EP_DTYPE_f64 ? f64_.row(static_cast<const double*>(values), n, last_)
                                              : position_(values, n, last_);
      }
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override {
    return shape(shapes, 1).dims[desc_.attributes.arg_reduce.axis];
  }

 private:
  static constexpr int64_t width = 256;  // columns that a thread takes at a time

  // True if neighbours in memory belong to different results, which are neighbours too.
  static bool has_columns(const Axes& row, const Axes& src, const Axes& dst) {
    const int32_t last = src.rank - 1;
    return last >= 0 && src.strides[last] == 1 && dst.strides[last] == 1 && src.dims[last] > 1 && row.strides[0] > 1 &&
           row.dims[0] <= std::numeric_limits<int32_t>::max();
  }

  template <class T>
  void columns(const ep_launch& launch, const ArgReduceKernels<T>& kernels, const Axes& row, const Axes& src,
               const Axes& dst, int64_t* to) const {
    const auto* from = reinterpret_cast<const T*>(address_of(launch.operands[1]));
    const int64_t length = src.dims[src.rank - 1];
    const int64_t blocks = (length + width - 1) / width;
    const int64_t units = src.count() / length * blocks;
    parallel(device->threads, src.count() * row.dims[0] / 8, [&](int32_t part, int32_t parts) {
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t start = unit % blocks * width;
        const int64_t first = unit / blocks * length + start;
        kernels.columns(to + dst.offset(first), from + src.offset(first), row.strides[0], row.dims[0],
                        std::min(width, length - start), last_);
      }
    });
  }

  RowFormat format_;
  uint32_t mask_;
  bool last_;
  PositionFunction position_;
  ArgReduceKernels<float> f32_;
  ArgReduceKernels<double> f64_;
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
