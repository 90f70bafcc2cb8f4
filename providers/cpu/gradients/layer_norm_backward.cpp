// layer_norm_backward. The number of rows alone determines how they are divided into pieces. Each piece sums its part
// of the gradients of SCALE and SHIFT; the sums are then added in the order of the pieces.
#include <algorithm>
#include <vector>

#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t lanes = 16;

// One row of n elements: x, the gradient g, and scale, which may be NULL.
template <class T>
struct Row {
  const T* x;
  const T* g;
  const T* scale;
  int64_t n;
  T mean, inv_std;

  T normal(int64_t i) const { return (x[i] - mean) * inv_std; }
  T scaled(int64_t i) const { return scale == nullptr ? g[i] : g[i] * scale[i]; }
};

// Computes the mean of the scaled gradient, and of its product with the normalised row.
template <class T>
void means(const Row<T>& row, double* gradient, double* product) {
  double totals[2] = {0, 0};
  for (int64_t begin = 0; begin < row.n; begin += 4096) {
    const int64_t end = std::min(begin + 4096, row.n);
    T sums[lanes] = {}, products[lanes] = {};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t j = 0; j < lanes; ++j) {
        const T scaled = row.scaled(i + j);
        sums[j] += scaled;
        products[j] += scaled * row.normal(i + j);
      }
    }
    for (; i < end; ++i) {
      sums[i % lanes] += row.scaled(i);
      products[i % lanes] += row.scaled(i) * row.normal(i);
    }
    for (int64_t j = 0; j < lanes; ++j) {
      totals[0] += static_cast<double>(sums[j]);
      totals[1] += static_cast<double>(products[j]);
    }
  }
  *gradient = totals[0] / static_cast<double>(row.n);
  *product = totals[1] / static_cast<double>(row.n);
}

// Writes the gradient of the row, and adds to the gradients of SCALE and SHIFT.
template <class T>
void finish(const Row<T>& row, double mean, double product, T* __restrict dst, double* __restrict of_scale,
            double* __restrict of_shift) {
  const T m = static_cast<T>(mean);
  const T p = static_cast<T>(product);
  for (int64_t i = 0; i < row.n; ++i) {
    const T normal = row.normal(i);
    dst[i] = row.inv_std * (row.scaled(i) - m - normal * p);
    of_scale[i] += static_cast<double>(row.g[i] * normal);
    of_shift[i] += static_cast<double>(row.g[i]);
  }
}

template <class T>
class LayerNormBackwardPrimitive final : public ep_primitive {
 public:
  LayerNormBackwardPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        format_(desc.operands[0].dtype, on.simd),
        mask_(~0U << desc.attributes.layer_norm_backward.axis),
        src_(find_operand(desc, EP_ROLE_SRC)),
        scale_(find_operand(desc, EP_ROLE_SCALE)),
        mean_(find_operand(desc, EP_ROLE_MEAN)),
        inv_std_(find_operand(desc, EP_ROLE_INV_STD)),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const int64_t rows = axes_of(shape(shapes, 0), mask_, false).count();
    return static_cast<uint64_t>(pieces(rows) * 2 * axes_of(shape(shapes, 0), mask_, true).count()) * sizeof(double);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t rows = axes_of(shape(launch.shapes, 0), mask_, false).count();
    const int64_t n = axes_of(shape(launch.shapes, 0), mask_, true).count();
    const int64_t count = pieces(rows);
    auto* const sums = reinterpret_cast<double*>(address_of(launch.workspace));
    const std::vector<T> scale = scale_of(launch, n);
    parallel(device->threads, rows * n, [&](int32_t part, int32_t parts) {
      std::vector<T> room(static_cast<size_t>(3 * n));
      for (int64_t piece = count * part / parts; piece < count * (part + 1) / parts; ++piece) {
        double* const of_scale = sums + piece * 2 * n;
        std::fill_n(of_scale, 2 * n, 0.0);
        for (int64_t row = rows * piece / count; row < rows * (piece + 1) / count; ++row) {
          run_row(launch, row, n, scale.empty() ? nullptr : scale.data(), room.data(), of_scale);
        }
      }
    });
    for (int64_t piece = 1; piece < count; ++piece) {
      for (int64_t i = 0; i < 2 * n; ++i) sums[i] += sums[piece * 2 * n + i];
    }
    write_sums(launch, 1, n, sums);
    write_sums(launch, 2, n, sums + n);
    return EP_STATUS_OK;
  }

 private:
  static int64_t pieces(int64_t rows) { return std::clamp<int64_t>(rows / 8, 1, 32); }

  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }
  // The normalised axes of operand `i`, which are its last ones.
  Axes normalised(const ep_launch& launch, int32_t i) const {
    const OperandShape given = shape(launch.shapes, i);
    const int32_t count = shape(launch.shapes, 0).rank - desc_.attributes.layer_norm_backward.axis;
    return axes_of(given, ~0U << (given.rank - count), true);
  }

  std::vector<T> scale_of(const ep_launch& launch, int64_t n) const {
    std::vector<T> scale;
    if (scale_ < 0) return scale;
    const Axes axes = normalised(launch, scale_);
    const RowFormat format(desc_.operands[scale_].dtype);
    scale.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      alignas(8) char value[8];
      format.read(value, 1, address_of(launch.operands[scale_]) + axes.offset(i) * format.size, 1, 1);
      narrow(format.compute, format_.compute)(&scale[static_cast<size_t>(i)], 1, value, 1, 1);
    }
    return scale;
  }

  T statistic(const ep_launch& launch, int32_t i, int64_t row) const {
    const int64_t offset = axes_of(shape(launch.shapes, i), mask_, false).offset(row);
    return reinterpret_cast<const T*>(address_of(launch.operands[i]))[offset];
  }

  void run_row(const ep_launch& launch, int64_t row, int64_t n, const T* scale, T* room, double* sums) const {
    const auto fetch = [&](int32_t i, T* buffer) {
      const OperandShape given = shape(launch.shapes, i);
      const int64_t offset = axes_of(given, mask_, false).offset(row);
      return static_cast<const T*>(
          format_.fetch(address_of(launch.operands[i]) + offset * format_.size, axes_of(given, mask_, true), buffer));
    };
    const Row<T> one{fetch(src_, room),
                     fetch(gradient_, room + n),
                     scale,
                     n,
                     statistic(launch, mean_, row),
                     statistic(launch, inv_std_, row)};
    double mean = 0;
    double product = 0;
    means(one, &mean, &product);
    const OperandShape dst = shape(launch.shapes, 0);
    const Axes axes = axes_of(dst, mask_, true);
    char* const to = address_of(launch.operands[0]) + axes_of(dst, mask_, false).offset(row) * format_.size;
    const bool direct = format_.in_place(axes);
    T* const result = direct ? reinterpret_cast<T*>(to) : room + 2 * n;
    finish(one, mean, product, result, sums, sums + n);
    if (!direct) format_.put(to, axes, result);
  }

  void write_sums(const ep_launch& launch, int32_t i, int64_t n, const double* sums) const {
    const Axes axes = normalised(launch, i);
    const RowFormat format(desc_.operands[i].dtype);
    char* const to = address_of(launch.operands[i]);
    const ConvertFunction write = narrow(EP_DTYPE_f64, format.dtype, device->simd);
    if (axes.contiguous()) return write(to, 1, sums, 1, n);
    for (int64_t k = 0; k < n; ++k) write(to + axes.offset(k) * format.size, 1, sums + k, 1, 1);
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  uint32_t mask_;
  int32_t src_, scale_, mean_, inv_std_, gradient_;
};

}  // namespace

Refusal LayerNormBackward::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SCALE_GRADIENT, EP_ROLE_SHIFT_GRADIENT};
  for (uint32_t i = 0; i < 3; ++i) {
    if (desc.operands[i].role != roles[i]) return Refusal::because("result %u is missing", i);
  }
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t statistics = dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  for (const int32_t role : {EP_ROLE_SRC, EP_ROLE_GRADIENT, EP_ROLE_MEAN, EP_ROLE_INV_STD}) {
    const ep_operand_desc* given = operand(desc, role);
    const bool elements = role == EP_ROLE_SRC || role == EP_ROLE_GRADIENT;
    if (given == nullptr || given->dtype != (elements ? dtype : statistics))
      return Refusal::because("role %d is missing or of another type", role);
  }
  const int32_t axis = desc.attributes.layer_norm_backward.axis;
  const int32_t rank = desc.operands[0].rank;
  if (axis < 0 || axis >= rank) return Refusal::because("axis %d of rank %d", axis, rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& given = desc.operands[i];
    if (!is_row_float(given.dtype)) return Refusal::because("operand %u is %s", i, dtype_name(given.dtype));
    if (given.rank < rank - axis) return Refusal::because("operand %u has rank %d", i, given.rank);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal LayerNormBackward::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  if (desc.operands[0].dtype == EP_DTYPE_f64) {
    *out = make_primitive<LayerNormBackwardPrimitive<double>>(device, device, desc);
  } else {
    *out = make_primitive<LayerNormBackwardPrimitive<float>>(device, device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
