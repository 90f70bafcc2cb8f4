// convolution and transposed convolution on any floating type, element by element, accumulated in double.
#include <vector>

#include "providers/cpu/plain/apart.h"
#include "providers/cpu/plain/epilogue.h"
#include "providers/cpu/plain/plain.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/widened/widened.h"

namespace tenon::provider::cpu {
namespace {

// Sizes with three spatial dims. Absent dims have length 1.
struct Geometry {
  int64_t n, c, o, groups;
  int64_t src[3] = {1, 1, 1}, dst[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  bool transposed;
};

class ConvolutionPrimitive final : public ep_primitive {
 public:
  explicit ConvolutionPrimitive(const ep_primitive_desc& desc)
      : desc_(desc),
        format_(desc.operands[0].dtype),
        src_(find_operand(desc, EP_ROLE_SRC)),
        weight_(find_operand(desc, EP_ROLE_WEIGHT)),
        bias_(find_operand(desc, EP_ROLE_BIAS)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Geometry g = geometry(launch);
    const std::vector<double> src = read(launch, src_);
    const std::vector<double> weight = read(launch, weight_);
    const std::vector<double> bias = bias_ < 0 ? std::vector<double>() : read(launch, bias_);
    const int64_t rows = g.n * g.o * g.dst[0] * g.dst[1];
    const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2] * g.c / g.groups;
    parallel(device->threads, rows * g.dst[2] * taps * 2, [&](int32_t part, int32_t parts) {
      std::vector<double> values(static_cast<size_t>(g.dst[2]));
      std::vector<char> row(values.size() * 8);
      std::vector<char> buffer;
      for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
        const int64_t at[4] = {i / (g.o * g.dst[0] * g.dst[1]), i / (g.dst[0] * g.dst[1]) % g.o,
                               i / g.dst[1] % g.dst[0], i % g.dst[1]};
        for (int64_t x = 0; x < g.dst[2]; ++x) {
          const int64_t position[3] = {at[2], at[3], x};
          const double sum = g.transposed ? scattered(g, src, weight, at[0], at[1], position)
                                          : gathered(g, src, weight, at[0], at[1], position);
          values[static_cast<size_t>(x)] = sum + (bias.empty() ? 0.0 : bias[static_cast<size_t>(at[1])]);
        }
        store(launch, at, values, &row, &buffer);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  // Reads operand `i` into a dense array of doubles.
  std::vector<double> read(const ep_launch& launch, int32_t i) const {
    const Axes axes = axes_of(shape(launch, i), ~0U, true);
    const RowFormat format(desc_.operands[i].dtype);
    const int32_t last = axes.rank - 1;
    std::vector<double> values(static_cast<size_t>(axes.count()));
    std::vector<char> wide(static_cast<size_t>(axes.dims[last] * 8));
    for (int64_t first = 0; first < axes.count(); first += axes.dims[last]) {
      const char* from = address_of(launch.operands[i]) + axes.offset(first) * format.size;
      format.read(wide.data(), 1, from, axes.strides[last], axes.dims[last]);
      narrow(format.compute, EP_DTYPE_f64)(values.data() + first, 1, wide.data(), 1, axes.dims[last]);
    }
    return values;
  }

  Geometry geometry(const ep_launch& launch) const {
    const ep_convolution_attributes& attributes = desc_.attributes.convolution;
    const OperandShape dst = shape(launch, 0);
    const OperandShape src = shape(launch, src_);
    const OperandShape weight = shape(launch, weight_);
    Geometry g;
    g.n = src.dims[0];
    g.c = src.dims[1];
    g.o = dst.dims[1];
    g.groups = attributes.groups;
    g.transposed = attributes.transposed != 0;
    for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
      const int32_t at = 3 - attributes.spatial_rank + i;
      g.src[at] = src.dims[2 + i];
      g.dst[at] = dst.dims[2 + i];
      g.kernel[at] = weight.dims[2 + i];
      g.stride[at] = attributes.stride[i];
      g.dilation[at] = attributes.dilation[i];
      g.pad[at] = attributes.pad_low[i];
    }
    return g;
  }

  // Calls visit(source position, tap) for every tap whose source position along `axis` exists.
  template <class Visit>
  static void taps(const Geometry& g, int axis, int64_t position, const Visit& visit) {
    for (int64_t k = 0; k < g.kernel[axis]; ++k) {
      int64_t at = position * g.stride[axis] - g.pad[axis] + k * g.dilation[axis];
      if (g.transposed) {
        at = position + g.pad[axis] - k * g.dilation[axis];
        if (at % g.stride[axis] != 0) continue;
        at /= g.stride[axis];
      }
      if (at >= 0 && at < g.src[axis]) visit(at, k);
    }
  }

  // Returns the sum over channels and taps. weight_at(channel within the group, tap) is the index of the weight.
  template <class WeightAt>
  static double sum(const Geometry& g, const std::vector<double>& src, const std::vector<double>& weight, int64_t n,
                    int64_t first_channel, const int64_t* position, const WeightAt& weight_at) {
    double total = 0;
    taps(g, 0, position[0], [&](int64_t z, int64_t kz) {
      taps(g, 1, position[1], [&](int64_t y, int64_t ky) {
        taps(g, 2, position[2], [&](int64_t x, int64_t kx) {
          const int64_t tap = (kz * g.kernel[1] + ky) * g.kernel[2] + kx;
          for (int64_t c = 0; c < g.c / g.groups; ++c) {
            const int64_t from = (((n * g.c + first_channel + c) * g.src[0] + z) * g.src[1] + y) * g.src[2] + x;
            total += src[static_cast<size_t>(from)] * weight[static_cast<size_t>(weight_at(c, tap))];
          }
        });
      });
    });
    return total;
  }

  static double gathered(const Geometry& g, const std::vector<double>& src, const std::vector<double>& weight,
                         int64_t n, int64_t o, const int64_t* position) {
    const int64_t channels = g.c / g.groups;
    const int64_t all = g.kernel[0] * g.kernel[1] * g.kernel[2];
    const int64_t first = o / (g.o / g.groups) * channels;
    return sum(g, src, weight, n, first, position,
               [&](int64_t c, int64_t tap) { return (o * channels + c) * all + tap; });
  }

  static double scattered(const Geometry& g, const std::vector<double>& src, const std::vector<double>& weight,
                          int64_t n, int64_t o, const int64_t* position) {
    const int64_t outputs = g.o / g.groups;
    const int64_t all = g.kernel[0] * g.kernel[1] * g.kernel[2];
    const int64_t first = o / outputs * (g.c / g.groups);
    return sum(g, src, weight, n, first, position,
               [&](int64_t c, int64_t tap) { return ((first + c) * outputs + o % outputs) * all + tap; });
  }

  void store(const ep_launch& launch, const int64_t* at, const std::vector<double>& values, std::vector<char>* row,
             std::vector<char>* buffer) const {
    const OperandShape dst = shape(launch, 0);
    const auto n = static_cast<int64_t>(values.size());
    int64_t index[EP_MAX_RANK] = {at[0], at[1]};
    const int32_t spatial = dst.rank - 2;
    if (spatial >= 2) index[dst.rank - 2] = at[3];
    if (spatial == 3) index[2] = at[2];
    int64_t offset = 0;
    for (int32_t axis = 0; axis + 1 < dst.rank; ++axis) offset += index[axis] * dst.strides[axis];
    narrow(EP_DTYPE_f64, format_.compute)(row->data(), 1, values.data(), 1, n);
    apply_epilogues(desc_, device->simd, format_.compute, launch, index, n, row->data(), buffer);
    format_.write(address_of(launch.operands[0]) + offset * format_.size, dst.strides[dst.rank - 1], row->data(), 1, n);
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  int32_t src_;
  int32_t weight_;
  int32_t bias_;
};

}  // namespace

Refusal PlainConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const int32_t dtype = desc.operands[0].dtype;
  if (src == nullptr || operand(desc, EP_ROLE_WEIGHT) == nullptr) return Refusal::because("an operand is missing");
  const int32_t spatial = desc.attributes.convolution.spatial_rank;
  if (spatial < 1 || spatial > 3 || src->rank != spatial + 2)
    return Refusal::because("%d spatial dims of rank %d", spatial, src->rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || !is_row_float(operand.dtype))
      return Refusal::because("operand %u is not a tensor of floats", i);
  }
  if (Refusal refusal = why_not_together(device, desc)) return refusal;
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_no_plain_epilogues(desc, device.simd, wide_dtype(dtype));
}

Refusal PlainConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                               ep_primitive_info&) {
  *out = make_primitive<ConvolutionPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
