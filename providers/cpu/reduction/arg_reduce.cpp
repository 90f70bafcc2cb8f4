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

template <bool greatest>
auto position_function(int32_t compute) {
  return compute == EP_DTYPE_u64 ? position<greatest, uint64_t> : position<greatest, int64_t>;
}

class ArgReducePrimitive final : public RowPrimitive {
 public:
  ArgReducePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(desc.operands[1].dtype, on.simd),
        mask_(1U << desc.attributes.arg_reduce.axis),
        last_(desc.attributes.arg_reduce.last != 0),
        stored_(arg_reduce_kernels(on.simd, is_greatest(desc), desc.operands[1].dtype)),
        computed_(arg_reduce_kernels(on.simd, is_greatest(desc), format_.compute)) {
    if (computed_.row == nullptr) {
      computed_.row =
          is_greatest(desc) ? position_function<true>(format_.compute) : position_function<false>(format_.compute);
    }
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape src = shape(launch.shapes, 1);
    const Axes row = axes_of(src, mask_, true);
    const Axes src_outer = axes_of(src, mask_, false);
    const Axes dst_outer = axes_of(shape(launch.shapes, 0), mask_, false);
    const int64_t rows = src_outer.count();
    const int64_t n = row.count();
    auto* dst = reinterpret_cast<int64_t*>(address_of(launch.operands[0]));
    if (stored_.columns != nullptr && has_columns(row, src_outer, dst_outer)) {
      columns(launch, row, src_outer, dst_outer, dst);
      return EP_STATUS_OK;
    }
    const bool in_place = stored_.row != nullptr && row.contiguous();
    for_rows(launch, rows, computed_.columns != nullptr ? rows * n / 8 : rows * n,
             [&](int64_t begin, int64_t end, char* buffer) {
               for (int64_t i = begin; i < end; ++i) {
                 const char* const from = address_of(launch.operands[1]) + src_outer.offset(i) * format_.size;
                 dst[dst_outer.offset(i)] =
                     in_place ? stored_.row(from, n, last_) : computed_.row(format_.fetch(from, row, buffer), n, last_);
               }
             });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override {
    return shape(shapes, 1).dims[desc_.attributes.arg_reduce.axis];
  }

 private:
  static constexpr int64_t width = 256;  // columns per thread and call

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
