#include "providers/cpu/weight_gradient/sizes.h"

#include <algorithm>

namespace tenon::provider::cpu {
namespace {

WeightStrides strides_of(const OperandShape& shape, int32_t spatial_rank) {
  WeightStrides strides;
  strides.outer = shape.strides[0];
  strides.channel = shape.strides[1];
  for (int32_t i = 0; i < spatial_rank; ++i) strides.axis[3 - spatial_rank + i] = shape.strides[2 + i];
  return strides;
}

}  // namespace

Span steps_inside(int64_t results, int64_t stride, int64_t offset, int64_t length) {
  const int64_t first = offset >= 0 ? 0 : divided(-offset, stride);
  const int64_t last = offset >= length ? 0 : divided(length - offset, stride);
  return {std::min(first, results), std::min(last, results)};
}

Refusal why_few_channels(const ep_primitive_desc& desc) {
  if (is_dynamic(desc)) return Refusal::because("groups need static dims");
  const int64_t groups = desc.attributes.convolution_weight.groups;
  const ep_operand_desc& dst = desc.operands[0];
  if (groups == 1 || (dst.dims[0] / groups >= 4 && dst.dims[1] >= 4)) return {};
  return Refusal::because("%lld groups of few channels", static_cast<long long>(groups));
}

WeightSizes::WeightSizes(const ep_primitive_desc& desc, const ep_shape* shapes) {
  const ep_convolution_weight_attributes& at = desc.attributes.convolution_weight;
  const auto shape = [&](int32_t i) { return shape_of(desc.operands[i], shapes, static_cast<uint32_t>(i)); };
  const OperandShape of_dst = shape(0);
  const OperandShape of_src = shape(find_operand(desc, EP_ROLE_SRC));
  const OperandShape of_gradient = shape(find_operand(desc, EP_ROLE_GRADIENT));
  images = of_src.dims[0];
  groups = at.groups;
  in = of_src.dims[1];
  out = of_dst.dims[0];
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    const int32_t to = 3 - at.spatial_rank + i;
    src[to] = of_src.dims[2 + i];
    results[to] = of_gradient.dims[2 + i];
    kernel[to] = of_dst.dims[2 + i];
    stride[to] = at.stride[i];
    dilation[to] = at.dilation[i];
    pad[to] = at.pad_low[i];
  }
  src_strides = strides_of(of_src, at.spatial_rank);
  gradient_strides = strides_of(of_gradient, at.spatial_rank);
  dst_strides = strides_of(of_dst, at.spatial_rank);
  // A single tap with a stride reads only every few pixels, so only those count as SRC.
  for (int axis = 0; axis < 3; ++axis) {
    if (kernel[axis] != 1 || pad[axis] != 0) continue;
    src_strides.axis[axis] *= stride[axis];
    src[axis] = results[axis];
    stride[axis] = 1;
  }
}

// Makes units of equal length for all threads, if there are few of them.
WeightUnits::WeightUnits(const WeightSizes& sizes, int64_t columns, const OuterKernels& kernels, int32_t threads)
    : kernels_(kernels), groups_(sizes.groups), rows_(sizes.out / sizes.groups), columns_(columns) {
  blocks_ = divided(rows_, kernels.rows);
  const int64_t vector = kernels.columns / 2;
  width_ = columns_ >= kernels.columns ? kernels.columns : std::min(columns_, vector);
  panels_ = divided(columns_, std::max<int64_t>(width_, 1));
  const int64_t all = groups_ * panels_;
  const int64_t most = std::min(blocks_ + threads, rows_);
  if (all == 0 || all * blocks_ >= 8 * threads) return;
  for (int64_t blocks = blocks_; blocks < most; ++blocks) {
    if (all * blocks % threads != 0) continue;
    blocks_ = blocks;
    break;
  }
}

WeightUnits::Unit WeightUnits::at(int64_t number) const {
  const int64_t block = number % blocks_, panel = number / blocks_ % panels_, group = number / blocks_ / panels_;
  const int64_t row = rows_ * block / blocks_;
  Unit unit;
  unit.row = group * rows_ + row;
  unit.rows = static_cast<int32_t>(rows_ * (block + 1) / blocks_ - row);
  unit.column_of_dst = std::min(panel * width_, columns_ - width_);
  unit.column = group * columns_ + unit.column_of_dst;
  unit.columns = static_cast<int32_t>(width_);
  unit.known = static_cast<int32_t>(panel * width_ - unit.column_of_dst);
  return unit;
}

void WeightPlaces::write(const WeightUnits& units, const WeightUnits::Unit& unit, const float* sums, float* dst) const {
  const int64_t tile = units.tile_floats();
  const auto count = static_cast<int64_t>(taps.size());
  for (int32_t r = 0; r < unit.rows; ++r) {
    float* const to = dst + (unit.row + r) * row;
    const float* from = sums + r * units.kernels().columns + unit.known;
    for (int32_t c = unit.known; c < unit.columns; ++c, ++from) {
      float* const place = to + columns[static_cast<size_t>(unit.column_of_dst + c)];
      for (int64_t tap = 0; tap < count; ++tap) place[taps[static_cast<size_t>(tap)]] = from[tap * tile];
    }
  }
}

}  // namespace tenon::provider::cpu
