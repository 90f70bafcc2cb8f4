// pooling_backward, one plane at a time: adds the gradient of each result to its maximum or its window.
#include <algorithm>
#include <vector>

#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/pooling/plane.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// `src` of the plane is DST, and `dst` is GRADIENT: the names refer to the forward pooling.
template <class T>
class PoolingBackwardPrimitive final : public ep_primitive {
 public:
  PoolingBackwardPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        format_(desc.operands[0].dtype, on.simd),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        indices_(find_operand(desc, EP_ROLE_INDICES)) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    const OperandShape dst = shape(launch, 0);
    const Plane plane(desc_.attributes.pooling_backward, dst, shape(launch, gradient_),
                      indices_ >= 0 ? shape(launch, indices_).strides : nullptr);
    const int64_t planes = dst.dims[0] * dst.dims[1];
    const int64_t elements = plane.src[0] * plane.src[1] * plane.src[2];
    const int64_t results = plane.dst[0] * plane.dst[1] * plane.dst[2];
    const int64_t taps = indices_ >= 0 ? 2 : plane.kernel[0] * plane.kernel[1] * plane.kernel[2];
    BadIndex bad;
    parallel(device->threads, planes * (elements + results * taps) / 2, [&](int32_t part, int32_t parts) {
      std::vector<T> sums(static_cast<size_t>(elements));
      std::vector<T> row(static_cast<size_t>(plane.dst[2]));
      for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; ++i) {
        std::fill(sums.begin(), sums.end(), T{0});
        add_plane(launch, plane, i / dst.dims[1], i % dst.dims[1], sums.data(), row.data(), &bad);
        write_plane(launch, plane, i / dst.dims[1], i % dst.dims[1], sums.data());
      }
    });
    return bad.answer(launch, indices_, out_fault);
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  void add_plane(const ep_launch& launch, const Plane& p, int64_t n, int64_t c, T* sums, T* row, BadIndex* bad) const {
    const OperandShape gradient = shape(launch, gradient_);
    const char* const from = address_of(launch.operands[gradient_]);
    for (int64_t line = 0; line < p.dst[0] * p.dst[1]; ++line) {
      const int64_t z = line / p.dst[1];
      const int64_t y = line % p.dst[1];
      const int64_t offset =
          n * gradient.strides[0] + c * gradient.strides[1] + z * p.dst_strides[0] + y * p.dst_strides[1];
      format_.read(row, 1, from + offset * format_.size, p.dst_strides[2], p.dst[2]);
      if (indices_ >= 0) {
        add_maxima(launch, p, n, c, z, y, sums, row, bad);
      } else {
        add_windows(p, z, y, sums, row);
      }
    }
  }

  void add_maxima(const ep_launch& launch, const Plane& p, int64_t n, int64_t c, int64_t z, int64_t y, T* sums,
                  const T* row, BadIndex* bad) const {
    const OperandShape indices = shape(launch, indices_);
    const auto* const at = reinterpret_cast<const int64_t*>(address_of(launch.operands[indices_])) +
                           n * indices.strides[0] + c * indices.strides[1] + z * p.index_strides[0] +
                           y * p.index_strides[1];
    const int64_t elements = p.src[0] * p.src[1] * p.src[2];
    for (int64_t x = 0; x < p.dst[2]; ++x) {
      const int64_t index = at[x * p.index_strides[2]];
      if (index >= 0 && index < elements) {
        sums[index] += row[x];
      } else {
        bad->note(index, elements);
      }
    }
  }

  // Divides `row` as the forward pooling does, and adds it to the windows of row (z, y).
  void add_windows(const Plane& p, int64_t z, int64_t y, T* sums, T* row) const {
    const TapRange tz = taps_at(p, 0, z);
    const TapRange ty = taps_at(p, 1, y);
    for (int64_t x = 0; x < p.dst[2]; ++x) {
      int64_t count = 1;
      const int64_t at[3] = {z, y, x};
      for (int axis = 0; axis < 3; ++axis) {
        const TapRange inside = taps_at(p, axis, at[axis]);
        const bool padded = desc_.attributes.pooling_backward.op == EP_POOLING_AVERAGE_INCLUDE_PAD;
        count *= padded ? padded_taps(p, axis, at[axis]) : inside.last - inside.first;
      }
      row[x] /= static_cast<T>(std::max<int64_t>(count, 1));
    }
    for (int64_t kz = tz.first; kz < tz.last; ++kz) {
      for (int64_t ky = ty.first; ky < ty.last; ++ky) {
        const int64_t sz = z * p.stride[0] - p.pad[0] + kz * p.dilation[0];
        const int64_t sy = y * p.stride[1] - p.pad[1] + ky * p.dilation[1];
        T* const line = sums + (sz * p.src[1] + sy) * p.src[2];
        for (int64_t kx = 0; kx < p.kernel[2]; ++kx) {
          const TapRange results = results_of_tap(p, kx);
          T* const to = line + kx * p.dilation[2] - p.pad[2];
          for (int64_t x = results.first; x < results.last; ++x) to[x * p.stride[2]] += row[x];
        }
      }
    }
  }

  void write_plane(const ep_launch& launch, const Plane& p, int64_t n, int64_t c, const T* sums) const {
    const OperandShape dst = shape(launch, 0);
    for (int64_t line = 0; line < p.src[0] * p.src[1]; ++line) {
      const int64_t offset = n * dst.strides[0] + c * dst.strides[1] + line / p.src[1] * p.src_strides[0] +
                             line % p.src[1] * p.src_strides[1];
      format_.write(address_of(launch.operands[0]) + offset * format_.size, p.src_strides[2], sums + line * p.src[2], 1,
                    p.src[2]);
    }
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  int32_t gradient_;
  int32_t indices_;
};

}  // namespace

Refusal PoolingBackward::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* gradient = operand(desc, EP_ROLE_GRADIENT);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  const ep_pooling_attributes& attributes = desc.attributes.pooling_backward;
  if (gradient == nullptr || desc.operands[0].role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > 3 || gradient->rank != attributes.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", attributes.spatial_rank, gradient->rank);
  }
  if (attributes.op < EP_POOLING_MAX || attributes.op > EP_POOLING_AVERAGE_INCLUDE_PAD)
    return Refusal::because("op %d", attributes.op);
  if (!is_row_float(gradient->dtype) || gradient->dtype != desc.operands[0].dtype)
    return Refusal::because("a gradient of %s", dtype_name(gradient->dtype));
  if ((indices != nullptr) != (attributes.op == EP_POOLING_MAX)) return Refusal::because("op and indices disagree");
  if (indices != nullptr && indices->dtype != EP_DTYPE_i64)
    return Refusal::because("indices of %s", dtype_name(indices->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal PoolingBackward::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info&) {
  if (wide_dtype(desc.operands[0].dtype) == EP_DTYPE_f64) {
    *out = make_primitive<PoolingBackwardPrimitive<double>>(device, device, desc);
  } else {
    *out = make_primitive<PoolingBackwardPrimitive<float>>(device, device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
