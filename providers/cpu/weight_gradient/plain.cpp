// convolution_weight on any floating type, one weight at a time: sums products over images and positions.
#include <algorithm>
#include <vector>

#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/weight_gradient/sizes.h"
#include "providers/cpu/weight_gradient/weight_gradient.h"

namespace tenon::provider::cpu {
namespace {

// The sum of x[i * step] * y[i].
template <class T>
double dot(const T* x, int64_t step, const T* y, int64_t n) {
  constexpr int64_t lanes = 16;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 4096) {
    const int64_t end = std::min(begin + 4096, n);
    T sums[lanes] = {};
    int64_t i = begin;
    if (step == 1) {
      for (; i + lanes <= end; i += lanes) {
        for (int64_t j = 0; j < lanes; ++j) sums[j] += x[i + j] * y[i + j];
      }
    }
    for (; i < end; ++i) sums[i % lanes] += x[i * step] * y[i];
    for (const T sum : sums) total += static_cast<double>(sum);
  }
  return total;
}

// Dims [n, channels, z, y, x]. Absent spatial dims have length 1.
struct Extent {
  int64_t dims[5] = {1, 1, 1, 1, 1};
  int64_t line(int64_t n, int64_t c, int64_t z, int64_t y) const {
    return (((n * dims[1] + c) * dims[2] + z) * dims[3] + y) * dims[4];
  }
};

template <class T>
class PlainWeightGradient final : public ep_primitive {
 public:
  explicit PlainWeightGradient(const ep_primitive_desc& desc)
      : desc_(desc), src_(find_operand(desc, EP_ROLE_SRC)), gradient_(find_operand(desc, EP_ROLE_GRADIENT)) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const int64_t elements =
        axes_of(shape(shapes, src_), ~0U, true).count() + axes_of(shape(shapes, gradient_), ~0U, true).count();
    return static_cast<uint64_t>(elements) * sizeof(T);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    T* const x = reinterpret_cast<T*>(address_of(launch.workspace));
    T* const g = x + axes_of(shape(launch.shapes, src_), ~0U, true).count();
    const Extent src = read(launch, src_, x);
    const Extent gradient = read(launch, gradient_, g);
    const Axes dst = axes_of(shape(launch.shapes, 0), ~0U, true);
    const RowFormat format(desc_.operands[0].dtype);
    char* const to = address_of(launch.operands[0]);
    const int64_t weights = dst.count();
    const int64_t products = gradient.dims[0] * gradient.dims[2] * gradient.dims[3] * gradient.dims[4];
    parallel(device->threads, weights * products, [&](int32_t part, int32_t parts) {
      for (int64_t i = weights * part / parts; i < weights * (part + 1) / parts; ++i) {
        const double sum = weight(dst, i, src, x, gradient, g);
        alignas(8) char value[8];
        narrow(EP_DTYPE_f64, format.dtype)(value, 1, &sum, 1, 1);
        std::copy_n(value, format.size, to + dst.offset(i) * format.size);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  // Reads operand `i` into a dense array.
  Extent read(const ep_launch& launch, int32_t i, T* values) const {
    const Axes axes = axes_of(shape(launch.shapes, i), ~0U, true);
    const RowFormat format(desc_.operands[i].dtype);
    const int64_t length = axes.dims[axes.rank - 1];
    const int64_t lines = axes.count() / length;
    const char* const from = address_of(launch.operands[i]);
    parallel(device->threads, lines * length / 2, [&](int32_t part, int32_t parts) {
      for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
        format.read(values + line * length, 1, from + axes.offset(line * length) * format.size,
                    axes.strides[axes.rank - 1], length);
      }
    });
    Extent extent;
    extent.dims[0] = axes.dims[0];
    extent.dims[1] = axes.dims[1];
    for (int32_t axis = 2; axis < axes.rank; ++axis) extent.dims[5 - axes.rank + axis] = axes.dims[axis];
    return extent;
  }

  // `axis` is 0 to 2, one of three spatial axes.
  Span span(int32_t axis, int64_t tap, int64_t source, int64_t results, int64_t* offset, int64_t* stride) const {
    const ep_convolution_weight_attributes& at = desc_.attributes.convolution_weight;
    const int32_t i = axis - (3 - at.spatial_rank);
    *stride = i < 0 ? 1 : at.stride[i];
    *offset = i < 0 ? 0 : tap * at.dilation[i] - at.pad_low[i];
    return steps_inside(results, *stride, *offset, source);
  }

  double weight(const Axes& dst, int64_t number, const Extent& src, const T* x, const Extent& gradient,
                const T* g) const {
    int64_t taps[3] = {0, 0, 0};
    for (int32_t axis = dst.rank - 1; axis >= 2; --axis) {
      taps[5 - dst.rank + axis - 2] = number % dst.dims[axis];
      number /= dst.dims[axis];
    }
    const int64_t o = number / dst.dims[1];
    const int64_t c =
        o / (dst.dims[0] / desc_.attributes.convolution_weight.groups) * dst.dims[1] + number % dst.dims[1];
    int64_t offset[3], stride[3];
    Span spans[3] = {};
    for (int32_t axis = 0; axis < 3; ++axis) {
      spans[axis] = span(axis, taps[axis], src.dims[axis + 2], gradient.dims[axis + 2], &offset[axis], &stride[axis]);
    }
    double total = 0;
    const int64_t length = spans[2].last - spans[2].first;
    for (int64_t n = 0; n < src.dims[0] && length > 0; ++n) {
      for (int64_t z = spans[0].first; z < spans[0].last; ++z) {
        for (int64_t y = spans[1].first; y < spans[1].last; ++y) {
          const T* from = x + src.line(n, c, z * stride[0] + offset[0], y * stride[1] + offset[1]) +
                          spans[2].first * stride[2] + offset[2];
          total += dot(from, stride[2], g + gradient.line(n, o, z, y) + spans[2].first, length);
        }
      }
    }
    return total;
  }

  ep_primitive_desc desc_;
  int32_t src_;
  int32_t gradient_;
};

}  // namespace

Refusal WeightGradient::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* gradient = operand(desc, EP_ROLE_GRADIENT);
  const ep_convolution_weight_attributes& at = desc.attributes.convolution_weight;
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || src == nullptr || gradient == nullptr) {
    return Refusal::because("its operands are not DST, SRC and GRADIENT");
  }
  if (at.spatial_rank < 1 || at.spatial_rank > 3 || src->rank != at.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", at.spatial_rank, src->rank);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!is_row_float(desc.operands[i].dtype) || desc.operands[i].dtype != src->dtype)
      return Refusal::because("operand %u is %s", i, dtype_name(desc.operands[i].dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal WeightGradient::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (wide_dtype(desc.operands[0].dtype) == EP_DTYPE_f64) {
    *out = make_primitive<PlainWeightGradient<double>>(device, desc);
  } else {
    *out = make_primitive<PlainWeightGradient<float>>(device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
