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
        kernels_(norm_kernels<float>(on.simd)),
        wide_kernels_(norm_kernels<double>(on.simd)),
        narrow_affine_(narrow_affine(on.simd, format_.dtype)),
        axis_(desc.attributes.batch_norm.axis),
        src_(find_operand(desc, EP_ROLE_SRC)) {
    const int32_t roles[] = {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE};
    for (int32_t i = 0; i < 4; ++i) parameters_[i] = find_operand(desc, roles[i]);
  }

  // A row has all channels if the innermost axis is the channel axis. Else it has one channel and spans the axes below
  // the channel axis, or as many of them as both operands walk without gaps.
  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm has no launch scalar 0 (eps).");
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, src_);
    const int32_t last = dst.rank - 1;
    Axes dst_row, src_row;
    const int32_t first = find_rows(dst, src, &dst_row, &src_row);
    const uint32_t inner = ~0U << first;
    const Axes dst_outer = axes_of(dst, inner, false);
    const Axes src_outer = axes_of(src, inner, false);
    const int64_t rows = dst_outer.count();
    const int64_t n = dst_row.count();
    const bool direct = format_.in_place(dst_row);
    int64_t below = 1;  // rows per channel
    for (int32_t axis = axis_ + 1; axis < first; ++axis) below *= dst.dims[axis];
    const double eps = launch.scalars[0].value.f64;
    for_rows(launch, rows, rows * n / 2, [&](int64_t begin, int64_t end, char* buffer) {
      const bool vector = axis_ == last;
      char* values[] = {buffer, buffer + stack_row * 8};
      alignas(64) char channel[3][stack_row * 8];
      int64_t read = -1;  // the first channel whose parameters are in `channel`
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = vector ? 0 : row / below % dst.dims[axis_];
        for (int64_t start = 0; start < n; start += stack_row) {
          const int64_t length = std::min(stack_row, n - start), wanted = vector ? start : c;
          if (wanted != read) read_channels(launch, wanted, vector ? length : 1, eps, channel);
          read = wanted;
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

  // Sets the rows of both operands, each as one axis. Returns the first axis that belongs to a row.
  int32_t find_rows(const OperandShape& dst, const OperandShape& src, Axes* dst_row, Axes* src_row) const {
    int32_t first = dst.rank - 1;
    int64_t n = dst.dims[first], dst_stride = dst.strides[first], src_stride = src.strides[first];
    while (first - 1 > axis_) {
      const int32_t axis = first - 1;
      if (n == 1) {
        dst_stride = dst.strides[axis];
        src_stride = src.strides[axis];
      } else if (dst.dims[axis] != 1 && (dst.strides[axis] != n * dst_stride || src.strides[axis] != n * src_stride)) {
        break;
      }
      n *= dst.dims[axis];
      first = axis;
    }
    dst_row->add(n, dst_stride);
    src_row->add(n, src_stride);
    return first;
  }

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
    if (narrow_affine_ != nullptr && !vector && dst_stride == 1 && src_stride == 1) {
      const auto value = [channel](int which) { return *reinterpret_cast<const float*>(channel[which]); };
      return narrow_affine_(to, from, value(0), value(1), value(2), length);
    }
    const void* source = from;
    if (!format_.same || src_stride != 1) {
      format_.read(values[0], 1, from, src_stride, length);
      source = values[0];
    }
    char* result = direct ? to : values[1];
    const int64_t step = vector ? 1 : 0;
    if (format_.compute == EP_DTYPE_f64)
      normalize(wide_kernels_, result, source, channel, step, length);
    else
      normalize(kernels_, result, source, channel, step, length);
    if (!direct) format_.write(to, dst_stride, result, 1, length);
  }

  template <class T>
  static void normalize(const NormKernels<T>& kernels, char* dst, const void* src, const char (*channel)[stack_row * 8],
                        int64_t step, int64_t n) {
    const auto at = [channel](int which) { return reinterpret_cast<const T*>(channel[which]); };
    kernels.normalize(reinterpret_cast<T*>(dst), static_cast<const T*>(src), at(0), at(1), at(2), step, n);
  }

  RowFormat format_;
  NormKernels<float> kernels_;
  NormKernels<double> wide_kernels_;
  NarrowAffine narrow_affine_;
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

Refusal BatchNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<BatchNormPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
