// group_norm: a row is a group of channels of one image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/normalization/normalization.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {
namespace {

// outer_axes: the two axes of `shape` that number the groups. inner_axes: the axes within a group.
Axes outer_axes(const OperandShape& shape, int64_t groups) {
  Axes axes;
  axes.add(shape.dims[0], shape.strides[0]);
  axes.add(groups, shape.strides[1] * (shape.dims[1] / groups));
  return axes;
}
Axes inner_axes(const OperandShape& shape, int64_t groups) {
  Axes axes;
  axes.add(shape.dims[1] / groups, shape.strides[1]);
  for (int32_t axis = 2; axis < shape.rank; ++axis) axes.add(shape.dims[axis], shape.strides[axis]);
  return axes;
}

class GroupNormPrimitive final : public RowPrimitive {
 public:
  GroupNormPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(desc.operands[0].dtype, on.simd),
        kernels_(norm_kernels<float>(on.simd)),
        wide_kernels_(norm_kernels<double>(on.simd)),
        groups_(desc.attributes.group_norm.groups),
        src_(find_operand(desc, EP_ROLE_SRC)),
        scale_(find_operand(desc, EP_ROLE_SCALE)),
        shift_(find_operand(desc, EP_ROLE_SHIFT)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "group_norm has no launch scalar 0 (eps).");
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, src_);
    const Axes dst_row = inner_axes(dst, groups_);
    const Axes src_row = inner_axes(src, groups_);
    const Axes dst_outer = outer_axes(dst, groups_);
    const Axes src_outer = outer_axes(src, groups_);
    const bool direct = format_.in_place(dst_row);
    const bool in_place =
        overlap(format_.size, dst, address_of(launch.operands[0]), src, address_of(launch.operands[src_]));
    const bool stream = direct && !in_place && dst_outer.count() * dst_row.count() * format_.size > stream_bytes;
    const int64_t channels = dst_row.dims[0];
    const int64_t n = dst_row.count();
    const double eps = launch.scalars[0].value.f64;
    const std::vector<double> scales = of_channels(launch, scale_, groups_ * channels, 1);
    const std::vector<double> shifts = of_channels(launch, shift_, groups_ * channels, 0);
    for_rows(launch, dst_outer.count(), dst_outer.count() * n / 2, [&](int64_t begin, int64_t end, char* buffer) {
      for (int64_t row = begin; row < end; ++row) {
        const void* from =
            format_.fetch(address_of(launch.operands[src_]) + src_outer.offset(row) * format_.size, src_row, buffer);
        char* const to = address_of(launch.operands[0]) + dst_outer.offset(row) * format_.size;
        char* const result = direct ? to : buffer;
        const int64_t first = row % groups_ * channels;
        const Affine affine = {launch, scales.data() + first, shifts.data() + first, stream};
        if (format_.compute == EP_DTYPE_f64) {
          compute(wide_kernels_, affine, reinterpret_cast<double*>(result), static_cast<const double*>(from), channels,
                  n / channels, eps, row);
        } else {
          compute(kernels_, affine, reinterpret_cast<float*>(result), static_cast<const float*>(from), channels,
                  n / channels, eps, row);
        }
        if (!direct) format_.put(to, dst_row, result);
      }
      if (stream) store_fence();
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override { return inner_axes(shape(shapes, 0), groups_).count(); }

 private:
  // The scale and shift of a row.
  struct Affine {
    const ep_launch& launch;
    const double* scale;  // one per channel of the row
    const double* shift;
    bool stream;  // true: write results past the cache
  };

  // Reads SCALE or SHIFT for all channels; all are `none` if the operand is absent.
  std::vector<double> of_channels(const ep_launch& launch, int32_t index, int64_t channels, double none) const {
    std::vector<double> numbers(static_cast<size_t>(channels), none);
    if (index < 0) return numbers;
    const RowFormat format(desc_.operands[index].dtype);
    const char* const from = address_of(launch.operands[index]);
    const int64_t stride = shape(launch.shapes, index).strides[0];
    if (format.compute == EP_DTYPE_f64) {
      format.read(numbers.data(), 1, from, stride, channels);
    } else {
      std::vector<float> narrow(static_cast<size_t>(channels));
      format.read(narrow.data(), 1, from, stride, channels);
      std::copy(narrow.begin(), narrow.end(), numbers.begin());
    }
    return numbers;
  }

  template <class T>
  void compute(const NormKernels<T>& kernels, const Affine& affine, T* dst, const T* src, int64_t channels,
               int64_t length, double eps, int64_t row) const {
    T mean = 0;
    T inv_std = 0;
    kernels.moments(src, channels * length, eps, &mean, &inv_std);
    store(affine.launch, row, static_cast<double>(mean), static_cast<double>(inv_std));
    for (int64_t c = 0; c < channels; ++c, src += length, dst += length) {
      const auto factor = static_cast<T>(affine.scale[c] * static_cast<double>(inv_std));
      kernels.affine(dst, src, mean, factor, static_cast<T>(affine.shift[c]), length, affine.stream);
    }
  }

  void store(const ep_launch& launch, int64_t row, double mean, double inv_std) const {
    for (const auto& [role, value] : {std::pair{EP_ROLE_MEAN, mean}, {EP_ROLE_INV_STD, inv_std}}) {
      const int32_t index = find_operand(desc_, role);
      if (index < 0) continue;
      const OperandShape given = shape(launch.shapes, index);
      const int64_t offset = row / groups_ * given.strides[0] + row % groups_ * given.strides[1];
      char* const to = address_of(launch.operands[index]);
      if (desc_.operands[index].dtype == EP_DTYPE_f64) {
        reinterpret_cast<double*>(to)[offset] = value;
      } else {
        reinterpret_cast<float*>(to)[offset] = static_cast<float>(value);
      }
    }
  }

  RowFormat format_;
  NormKernels<float> kernels_;
  NormKernels<double> wide_kernels_;
  int64_t groups_;
  int32_t src_, scale_, shift_;
};

}  // namespace

Refusal GroupNorm::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const int32_t dtype = desc.operands[0].dtype;
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("its operands are not DST and SRC");
  if (!is_row_float(dtype) || src->dtype != dtype) return Refusal::because("%s is not a float", dtype_name(dtype));
  if (src->rank < 2 || desc.attributes.group_norm.groups < 1)
    return Refusal::because("rank %d, %lld groups", src->rank,
                            static_cast<long long>(desc.attributes.group_norm.groups));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || !is_row_float(operand.dtype))
      return Refusal::because("operand %u is not a tensor of floats", i);
    const bool result = operand.role == EP_ROLE_MEAN || operand.role == EP_ROLE_INV_STD;
    if (result && operand.dtype != (dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32))
      return Refusal::because("mean or 1/std of %s", dtype_name(operand.dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal GroupNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<GroupNormPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
