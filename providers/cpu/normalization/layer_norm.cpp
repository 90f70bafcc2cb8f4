// layer_norm and rms_norm over the axes from `axis` to the last.
#include <algorithm>
#include <cmath>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/normalization/normalization.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {
namespace {

int32_t first_axis(const ep_primitive_desc& desc) {
  return desc.kind == EP_PRIMITIVE_rms_norm ? desc.attributes.rms_norm.axis : desc.attributes.layer_norm.axis;
}

// Operand numbers of the optional roles; -1 if absent.
struct Roles {
  int32_t src, scale, shift, mean, inv_std;
};

class LayerNormPrimitive final : public RowPrimitive {
 public:
  LayerNormPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 3),
        format_(desc.operands[0].dtype, on.simd),
        kernels_(norm_kernels<float>(on.simd)),
        wide_kernels_(norm_kernels<double>(on.simd)),
        axis_(first_axis(desc)),
        mask_(~0U << axis_),
        rms_(desc.kind == EP_PRIMITIVE_rms_norm),
        roles_{find_operand(desc, EP_ROLE_SRC), find_operand(desc, EP_ROLE_SCALE), find_operand(desc, EP_ROLE_SHIFT),
               find_operand(desc, EP_ROLE_MEAN), find_operand(desc, EP_ROLE_INV_STD)} {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "the norm has no launch scalar 0 (eps).");
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, roles_.src);
    const Axes dst_row = axes_of(dst, mask_, true);
    const Axes src_row = axes_of(src, mask_, true);
    const Axes dst_outer = axes_of(dst, mask_, false);
    const Axes src_outer = axes_of(src, mask_, false);
    const int64_t rows = dst_outer.count();
    const int64_t n = dst_row.count();
    const bool direct = format_.in_place(dst_row);
    const bool in_place =
        overlap(format_.size, dst, address_of(launch.operands[0]), src, address_of(launch.operands[roles_.src]));
    const bool stream = direct && !in_place && rows * n * format_.size > stream_bytes;
    const double eps = launch.scalars[0].value.f64;
    // Short rows without gaps are converted together, as many as the buffer of one row holds.
    const bool dense =
        dst_row.contiguous() && src_row.contiguous() && dst_outer.contiguous(n) && src_outer.contiguous(n);
    const int64_t together = dense && !format_.same ? stack_row / std::max<int64_t>(n, 1) : 1;
    for_rows(launch, rows, rows * n / 2, [&](int64_t begin, int64_t end, char* buffer) {
      const void* scale = parameters(launch, roles_.scale, buffer);
      const void* shift = parameters(launch, roles_.shift, buffer + n * 8);
      char* spare = buffer + 2 * n * 8;
      const auto finish_row = [&](int64_t row, char* result, const void* from) {
        double mean = 0;
        double inv_std = 0;
        compute(result, from, scale, shift, n, eps, stream, &mean, &inv_std);
        store(launch, roles_.mean, row, mean);
        store(launch, roles_.inv_std, row, inv_std);
      };
      for (int64_t row = begin; row < end && together > 1; row += together) {
        const int64_t count = std::min(together, end - row);
        format_.read(spare, 1, address_of(launch.operands[roles_.src]) + row * n * format_.size, 1, count * n);
        for (int64_t k = 0; k < count; ++k) {
          char* const values = spare + k * n * format_.compute_size;
          finish_row(row + k, values, values);
        }
        format_.write(address_of(launch.operands[0]) + row * n * format_.size, 1, spare, 1, count * n);
      }
      for (int64_t row = begin; row < end && together <= 1; ++row) {
        const void* from = format_.fetch(address_of(launch.operands[roles_.src]) + src_outer.offset(row) * format_.size,
                                         src_row, spare);
        char* to = address_of(launch.operands[0]) + dst_outer.offset(row) * format_.size;
        char* result = direct ? to : spare;
        finish_row(row, result, from);
        if (!direct) format_.put(to, dst_row, result);
      }
      if (stream) store_fence();
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override { return axes_of(shape(shapes, 0), mask_, true).count(); }

 private:
  // Reads SCALE or SHIFT. The operand has either all axes of SRC, with length 1 before `axis`, or only the normalised
  // axes.
  const void* parameters(const ep_launch& launch, int32_t index, char* buffer) const {
    if (index < 0) return nullptr;
    const OperandShape given = shape(launch.shapes, index);
    const int32_t normalised = shape(launch.shapes, 0).rank - axis_;
    const Axes row = axes_of(given, ~0U << (given.rank - normalised), true);
    const RowFormat parameter_format(desc_.operands[index].dtype, device->simd);
    const char* base = address_of(launch.operands[index]);
    if (parameter_format.compute == format_.compute) return parameter_format.fetch(base, row, buffer);
    double spare;
    for (int64_t i = 0; i < row.count(); ++i) {
      const char* element = base + row.offset(i) * parameter_format.size;
      parameter_format.read(&spare, 1, element, 1, 1);
      narrow(parameter_format.compute, format_.compute)(buffer + i * format_.compute_size, 1, &spare, 1, 1);
    }
    return buffer;
  }

  void store(const ep_launch& launch, int32_t index, int64_t row, double value) const {
    if (index < 0) return;
    const int64_t offset = axes_of(shape(launch.shapes, index), mask_, false).offset(row);
    char* const to = address_of(launch.operands[index]);
    if (desc_.operands[index].dtype == EP_DTYPE_f64) {
      reinterpret_cast<double*>(to)[offset] = value;
    } else {
      reinterpret_cast<float*>(to)[offset] = static_cast<float>(value);
    }
  }

  void compute(char* to, const void* from, const void* scale, const void* shift, int64_t n, double eps, bool stream,
               double* mean, double* inv_std) const {
    if (format_.compute == EP_DTYPE_f64)
      compute_row<double>(wide_kernels_, to, from, scale, shift, n, eps, stream, mean, inv_std);
    else
      compute_row<float>(kernels_, to, from, scale, shift, n, eps, stream, mean, inv_std);
  }
  template <class T>
  void compute_row(const NormKernels<T>& kernels, char* to, const void* from, const void* scale, const void* shift,
                   int64_t n, double eps, bool stream, double* mean, double* inv_std) const {
    T* const dst = reinterpret_cast<T*>(to);
    const T* const src = static_cast<const T*>(from);
    const T* const factors = static_cast<const T*>(scale);
    if (rms_) {
      *inv_std = static_cast<double>(kernels.rms_norm(dst, src, factors, n, eps, stream));
      return;
    }
    T statistics[2];
    kernels.layer_norm(dst, src, factors, static_cast<const T*>(shift), n, eps, stream, &statistics[0], &statistics[1]);
    *mean = static_cast<double>(statistics[0]);
    *inv_std = static_cast<double>(statistics[1]);
  }

  RowFormat format_;
  NormKernels<float> kernels_;
  NormKernels<double> wide_kernels_;
  int32_t axis_;
  uint32_t mask_;
  bool rms_;
  Roles roles_;
};

}  // namespace

Refusal LayerNorm::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const int32_t dtype = desc.operands[0].dtype;
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("its operands are not DST and SRC");
  if (!is_row_float(dtype) || src->dtype != dtype) return Refusal::because("%s is not a float", dtype_name(dtype));
  const int32_t axis = first_axis(desc);
  if (axis < 0 || axis >= src->rank) return Refusal::because("axis %d of rank %d", axis, src->rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || !is_row_float(operand.dtype))
      return Refusal::because("operand %u is not a tensor of floats", i);
    if (operand.rank < src->rank - axis) return Refusal::because("operand %u has rank %d", i, operand.rank);
    const bool result = operand.role == EP_ROLE_MEAN || operand.role == EP_ROLE_INV_STD;
    if (result && operand.dtype != (dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32))
      return Refusal::because("mean or 1/std of %s", dtype_name(operand.dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal LayerNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<LayerNormPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
