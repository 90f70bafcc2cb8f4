// batch_norm for inference: mean and variance are operands.
#include <cmath>

#include "providers/cpu/normalization/normalization.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {
namespace {

class BatchNormPrimitive final : public RowPrimitive {
 public:
  BatchNormPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 3),
        format_(desc.operands[0].dtype, on.simd),
        kernels_(row_kernels(on.simd)),
        axis_(desc.attributes.batch_norm.axis),
        src_(find_operand(desc, EP_ROLE_SRC)) {
    const int32_t roles[] = {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE};
    for (int32_t i = 0; i < 4; ++i) parameters_[i] = find_operand(desc, roles[i]);
  }

  // A row is the innermost axis. It has one channel, or all channels if the innermost axis is the channel axis.
  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm has no launch scalar 0 (eps).");
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, src_);
    const int32_t last = dst.rank - 1;
    const uint32_t inner = 1U << last;
    const Axes dst_row = axes_of(dst, inner, true);
    const Axes src_row = axes_of(src, inner, true);
    const Axes dst_outer = axes_of(dst, inner, false);
    const Axes src_outer = axes_of(src, inner, false);
    const int64_t rows = dst_outer.count();
    const int64_t n = dst_row.count();
    const bool direct = format_.in_place(dst_row);
    int64_t below = 1;  // rows per channel
    for (int32_t axis = axis_ + 1; axis < last; ++axis) below *= dst.dims[axis];
    const double eps = launch.scalars[0].value.f64;
    for_rows(launch, rows, rows * n / 2, [&](int64_t begin, int64_t end, char* buffer) {
      const bool vector = axis_ == last;
      char* values[] = {buffer, buffer + n * 8};
      alignas(64) char channel[3][stack_row * 8];
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = vector ? 0 : row / below % dst.dims[axis_];
        for (int64_t start = 0; start < n; start += stack_row) {
          const int64_t length = std::min(stack_row, n - start);
          const bool fresh = vector ? row == begin || n > stack_row : start == 0;
          if (fresh) read_channels(launch, vector ? start : c, vector ? length : 1, eps, channel);
          run(launch, {dst_row, src_row, dst_outer.offset(row), src_outer.offset(row)}, start, length, direct, vector,
              values, channel);
        }
      }
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape*) const override { return stack_row; }

 private:
  struct Row {
    const Axes& dst;
    const Axes& src;
    int64_t dst_offset, src_offset;
  };

  double parameter(const ep_launch& launch, int32_t which, int64_t c, double none) const {
    const int32_t index = parameters_[which];
    if (index < 0) return none;
    const int32_t dtype = desc_.operands[index].dtype;
    const int64_t stride = shape(launch.shapes, index).strides[0];
    const char* element = address_of(launch.operands[index]) + c * stride * dtype_size(dtype);
    if (dtype == EP_DTYPE_f64) return *reinterpret_cast<const double*>(element);
    if (dtype == EP_DTYPE_f32) return *reinterpret_cast<const float*>(element);
    const RowFormat parameter_format(dtype);
    float value;
    parameter_format.read(&value, 1, element, 1, 1);
    return value;
  }

  // Computes mean, scale / sqrt(variance + eps) and shift for channels [first, first + count).
  void read_channels(const ep_launch& launch, int64_t first, int64_t count, double eps,
                     char (*channel)[stack_row * 8]) const {
    for (int64_t i = 0; i < count; ++i) {
      const double factor = parameter(launch, 0, first + i, 1) / std::sqrt(parameter(launch, 3, first + i, 1) + eps);
      const double values[] = {parameter(launch, 2, first + i, 0), factor, parameter(launch, 1, first + i, 0)};
      for (int32_t which = 0; which < 3; ++which) {
        if (format_.compute == EP_DTYPE_f32) {
          reinterpret_cast<float*>(channel[which])[i] = static_cast<float>(values[which]);
        } else {
          reinterpret_cast<double*>(channel[which])[i] = values[which];
        }
      }
    }
  }

  void run(const ep_launch& launch, const Row& row, int64_t start, int64_t length, bool direct, bool vector,
           char** values, char (*channel)[stack_row * 8]) const {
    const int64_t dst_stride = row.dst.strides[0];
    const int64_t src_stride = row.src.strides[0];
    char* to = address_of(launch.operands[0]) + (row.dst_offset + start * dst_stride) * format_.size;
    const char* from = address_of(launch.operands[src_]) + (row.src_offset + start * src_stride) * format_.size;
    const void* source = from;
    if (!format_.same || src_stride != 1) {
      format_.read(values[0], 1, from, src_stride, length);
      source = values[0];
    }
    char* result = direct ? to : values[1];
    const int64_t step = vector ? 1 : 0;
    if (format_.compute == EP_DTYPE_f64) {
      normalize_f64(result, source, channel, step, length);
    } else {
      const auto at = [channel](int which) { return reinterpret_cast<const float*>(channel[which]); };
      kernels_.normalize(reinterpret_cast<float*>(result), static_cast<const float*>(source), at(0), at(1), at(2), step,
                         length);
    }
    if (!direct) format_.write(to, dst_stride, result, 1, length);
  }

  static void normalize_f64(char* dst, const void* src, const char (*channel)[stack_row * 8], int64_t step, int64_t n) {
    const auto at = [channel](int which) { return reinterpret_cast<const double*>(channel[which]); };
    const double* x = static_cast<const double*>(src);
    double* y = reinterpret_cast<double*>(dst);
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - at(0)[i * step]) * at(1)[i * step] + at(2)[i * step];
  }

  RowFormat format_;
  RowKernels kernels_;
  int32_t axis_;
  int32_t src_;
  int32_t parameters_[4];  // scale, shift, mean, variance
};

}  // namespace

Refusal BatchNorm::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const int32_t dtype = desc.operands[0].dtype;
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("its operands are not DST and SRC");
  if (!is_row_float(dtype) || src->dtype != dtype) return Refusal::because("%s is not a float", dtype_name(dtype));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || !is_row_float(operand.dtype))
      return Refusal::because("operand %u is not a tensor of floats", i);
  }
  const int32_t axis = desc.attributes.batch_norm.axis;
  if (axis < 0 || axis >= src->rank) return Refusal::because("axis %d of rank %d", axis, src->rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal BatchNorm::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operands[0].dtype == EP_DTYPE_f64) return Refusal::because("f64 is computed element by element");
  return why_not(device, desc, info);
}

Refusal BatchNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<BatchNormPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
