// convolution_weight over f32 as products of matrices. For each image and group, GRADIENT is a matrix [o, e], the taps
// of SRC are laid out as a matrix [c * k, e] (im2col), and the product of the first with the transpose of the second is
// added to DST [o, c * k].
#include <dnnl.h>

#include <algorithm>

#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The geometry with three spatial dims; absent dims have length 1.
struct Geometry {
  int64_t n, c, o, groups;
  int64_t src[3] = {1, 1, 1}, results[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t strides[3] = {0, 0, 0};  // of SRC, in elements
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t positions() const { return results[0] * results[1] * results[2]; }
  int64_t rows() const { return c / groups * taps(); }
};

// Writes row `row` of the matrix of taps of channels that begin at `src`.
void lay_out_row(const Geometry& g, const float* src, int64_t channel_stride, int64_t row, float* to) {
  const int64_t tap = row % g.taps();
  const int64_t taps[3] = {tap / (g.kernel[1] * g.kernel[2]), tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]};
  int64_t offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = taps[i] * g.dilation[i] - g.pad[i];
  const float* const channel = src + row / g.taps() * channel_stride;
  const int64_t step = g.stride[2] * g.strides[2];
  const int64_t first = std::min(offset[2] >= 0 ? 0 : (-offset[2] + g.stride[2] - 1) / g.stride[2], g.results[2]);
  const int64_t beyond = std::max(
      first,
      std::min(offset[2] >= g.src[2] ? 0 : (g.src[2] - offset[2] + g.stride[2] - 1) / g.stride[2], g.results[2]));
  for (int64_t z = 0; z < g.results[0]; ++z) {
    for (int64_t y = 0; y < g.results[1]; ++y, to += g.results[2]) {
      const int64_t at[2] = {z * g.stride[0] + offset[0], y * g.stride[1] + offset[1]};
      if (at[0] < 0 || at[0] >= g.src[0] || at[1] < 0 || at[1] >= g.src[1]) {
        std::fill_n(to, g.results[2], 0.0F);
        continue;
      }
      const float* from = channel + at[0] * g.strides[0] + at[1] * g.strides[1];
      std::fill_n(to, first, 0.0F);
      if (step == 1) {
        std::copy_n(from + first + offset[2], beyond - first, to + first);
      } else {
        for (int64_t x = first; x < beyond; ++x) to[x] = from[x * step + offset[2] * g.strides[2]];
      }
      std::fill(to + beyond, to + g.results[2], 0.0F);
    }
  }
}

class ConvolutionWeightGemm final : public ep_primitive {
 public:
  explicit ConvolutionWeightGemm(const ep_primitive_desc& desc)
      : desc_(desc), src_(find_operand(desc, EP_ROLE_SRC)), gradient_(find_operand(desc, EP_ROLE_GRADIENT)) {}

  // The taps of one group of one image; and GRADIENT of one image and DST, where they are not dense.
  uint64_t workspace(const ep_shape* shapes) const override {
    const Geometry g = geometry(shapes);
    const int64_t copies = (dense_image(shapes) ? 0 : g.o * g.positions()) +
                           (axes_of(shape(shapes, 0), ~0U, true).contiguous() ? 0 : g.o * g.rows());
    return static_cast<uint64_t>(g.rows() * g.positions() + copies) * sizeof(float);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    const Geometry g = geometry(launch.shapes);
    auto* const taps = reinterpret_cast<float*>(address_of(launch.workspace));
    float* spare = taps + g.rows() * g.positions();
    float* const image = dense_image(launch.shapes) ? nullptr : spare;
    if (image != nullptr) spare += g.o * g.positions();
    const Axes dst = axes_of(shape(launch.shapes, 0), ~0U, true);
    float* const result = dst.contiguous() ? reinterpret_cast<float*>(address_of(launch.operands[0])) : spare;
    for (int64_t n = 0; n < g.n; ++n) {
      const float* const gradient = image_of(launch, g, n, image);
      for (int64_t group = 0; group < g.groups; ++group) {
        lay_out(launch, g, n, group, taps);
        if (multiply(g, gradient + group * (g.o / g.groups) * g.positions(), taps,
                     result + group * (g.o / g.groups) * g.rows(), n > 0) != dnnl_success) {
          return fail_text(host, error, EP_STATUS_INTERNAL, "oneDNN failed to multiply two matrices.");
        }
      }
    }
    if (!dst.contiguous()) write(dst, result, address_of(launch.operands[0]));
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  // True if each image of GRADIENT is a dense matrix.
  bool dense_image(const ep_shape* shapes) const { return axes_of(shape(shapes, gradient_), ~1U, true).contiguous(); }

  Geometry geometry(const ep_shape* shapes) const {
    const ep_convolution_weight_attributes& at = desc_.attributes.convolution_weight;
    const OperandShape src = shape(shapes, src_);
    const OperandShape gradient = shape(shapes, gradient_);
    const OperandShape dst = shape(shapes, 0);
    Geometry g;
    g.n = src.dims[0];
    g.c = src.dims[1];
    g.o = dst.dims[0];
    g.groups = at.groups;
    for (int32_t i = 0; i < at.spatial_rank; ++i) {
      const int32_t to = 3 - at.spatial_rank + i;
      g.src[to] = src.dims[2 + i];
      g.strides[to] = src.strides[2 + i];
      g.results[to] = gradient.dims[2 + i];
      g.kernel[to] = dst.dims[2 + i];
      g.stride[to] = at.stride[i];
      g.dilation[to] = at.dilation[i];
      g.pad[to] = at.pad_low[i];
    }
    return g;
  }

  // GRADIENT of image `n` as a dense matrix, copied to `room` if it is none.
  const float* image_of(const ep_launch& launch, const Geometry& g, int64_t n, float* room) const {
    const OperandShape gradient = shape(launch.shapes, gradient_);
    const char* const from = address_of(launch.operands[gradient_]) + n * gradient.strides[0] * 4;
    if (room == nullptr) return reinterpret_cast<const float*>(from);
    StridedCopy copy;
    copy.rank = gradient.rank - 1;
    copy.size = 4;
    int64_t step = g.o * g.positions();
    for (int32_t axis = 0; axis < copy.rank; ++axis) {
      copy.dims[axis] = gradient.dims[axis + 1];
      copy.src_strides[axis] = gradient.strides[axis + 1];
      copy.dst_strides[axis] = step /= gradient.dims[axis + 1];
    }
    strided_copy(copy, reinterpret_cast<char*>(room), from, device->simd, device->threads);
    return room;
  }

  void lay_out(const ep_launch& launch, const Geometry& g, int64_t n, int64_t group, float* taps) const {
    const OperandShape src = shape(launch.shapes, src_);
    const float* const from = reinterpret_cast<const float*>(address_of(launch.operands[src_])) + n * src.strides[0] +
                              group * (g.c / g.groups) * src.strides[1];
    const int64_t rows = g.rows();
    parallel(device->threads, rows * g.positions() / 2, [&](int32_t part, int32_t parts) {
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        lay_out_row(g, from, src.strides[1], row, taps + row * g.positions());
      }
    });
  }

  // result [o, rows] = left [o, e] * right [rows, e], transposed, plus what was there if `adds`.
  dnnl_status_t multiply(const Geometry& g, const float* left, const float* right, float* result, bool adds) const {
    const int64_t o = g.o / g.groups;
    const int64_t rows = g.rows();
    const int64_t length = g.positions();
    const WideLease lease(device->threads, o * rows * length / 30);
    const OpenMpWidth width(lease.width());
    return dnnl_sgemm('N', 'T', o, rows, length, 1.0F, left, length, right, length, adds ? 1.0F : 0.0F, result, rows);
  }

  void write(const Axes& dst, const float* result, char* to) const {
    StridedCopy copy;
    copy.rank = dst.rank;
    copy.size = 4;
    int64_t step = dst.count();
    for (int32_t axis = 0; axis < dst.rank; ++axis) {
      copy.dims[axis] = dst.dims[axis];
      copy.dst_strides[axis] = dst.strides[axis];
      copy.src_strides[axis] = step /= dst.dims[axis];
    }
    strided_copy(copy, to, reinterpret_cast<const char*>(result), device->simd, device->threads);
  }

  ep_primitive_desc desc_;
  int32_t src_;
  int32_t gradient_;
};

}  // namespace

Refusal ConvolutionWeight::gemm_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  const ep_operand_desc& dst = desc.operands[0];
  if (dst.dtype != EP_DTYPE_f32) return Refusal::because("%s is not f32", dtype_name(dst.dtype));
  const int64_t groups = desc.attributes.convolution_weight.groups;
  if (groups > 1 && (dst.dims[0] / groups < 4 || dst.dims[1] < 4)) {
    return Refusal::because("%lld groups of few channels", static_cast<long long>(groups));
  }
  if ((desc.flags & EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0) {
    return Refusal::because("oneDNN adds in another order on other numbers of threads");
  }
  return {};
}

Refusal ConvolutionWeight::gemm_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                     ep_primitive_info&) {
  *out = make_primitive<ConvolutionWeightGemm>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
