// layer_norm_backward and batch_norm_backward: the sums of each parameter, then the gradients of elements.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/map.h"
#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/normalization/norm_sums.h"
#include "providers/cuda/normalization/normalization.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t warp_row = 512;  // elements of a row that a warp computes

enum Slot : int32_t { DST, SCALE_GRADIENT, SHIFT_GRADIENT, SRC, SCALE, MEAN, INV_STD, GRADIENT, slots };
constexpr int32_t roles[slots] = {EP_ROLE_DST,   EP_ROLE_SCALE_GRADIENT, EP_ROLE_SHIFT_GRADIENT, EP_ROLE_SRC,
                                  EP_ROLE_SCALE, EP_ROLE_MEAN,           EP_ROLE_INV_STD,        EP_ROLE_GRADIENT};

struct BackwardKernels {
  NormSums sums;
  CUfunction warp = nullptr;   // computes a row with a warp
  CUfunction block = nullptr;  // computes a row with a block
  CUfunction batch = nullptr;
};

bool is_layer(const ep_primitive_desc& desc) { return desc.kind == EP_PRIMITIVE_layer_norm_backward; }
int32_t axis_of(const ep_primitive_desc& desc) {
  return is_layer(desc) ? desc.attributes.layer_norm_backward.axis : desc.attributes.batch_norm_backward.axis;
}

class NormBackwardPrimitive final : public ep_primitive {
 public:
  NormBackwardPrimitive(const ep_primitive_desc& desc, const BackwardKernels& kernels)
      : desc_(desc), layer_(is_layer(desc)), axis_(axis_of(desc)), kernels_(kernels) {
    for (int32_t slot = 0; slot < slots; ++slot) places_[slot] = find_operand(desc, roles[slot]);
    has_sums_ = !layer_ || places_[SCALE_GRADIENT] >= 0 || places_[SHIFT_GRADIENT] >= 0;
    plan_.count = 4;
    plan_.dtypes[0] = plan_.dtypes[1] = plan_.dtypes[2] = desc.operands[places_[DST]].dtype;
    plan_.dtypes[3] = EP_DTYPE_u8;  // a stride of 1 is then one channel
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    NormSumsArguments sums = sums_of(launch.shapes);
    sums.src = address(launch, SRC);
    sums.gradient = address(launch, GRADIENT);
    sums.mean = address(launch, MEAN);
    sums.inv_std = address(launch, INV_STD);
    sums.scale_gradient = address(launch, SCALE_GRADIENT);
    sums.shift_gradient = address(launch, SHIFT_GRADIENT);
    const CUdeviceptr workspace = address_of(launch.workspace);
    if (!layer_) sums.totals = workspace;
    sums.sums = workspace + (layer_ ? 0 : kernels_.sums.totals_bytes(sums));
    if (has_sums_) {
      if (const ep_status status = kernels_.sums.run(stream, sums, error); status != EP_STATUS_OK) return status;
    }
    return layer_ ? run_rows(stream, launch, error) : run_elements(stream, launch, sums, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    if (!has_sums_) return 0;
    const NormSumsArguments sums = sums_of(shapes);
    return kernels_.sums.sums_bytes(sums) + (layer_ ? 0 : kernels_.sums.totals_bytes(sums));
  }
  bool has_workspace() const override { return has_sums_; }

 private:
  uint64_t address(const ep_launch& launch, Slot slot) const {
    return places_[slot] < 0 ? 0 : address_of(launch.operands[places_[slot]]);
  }
  OperandShape shape(const ep_shape* shapes, Slot slot) const {
    if (places_[slot] < 0) return {nullptr, nullptr, 0};
    return shape_of(desc_.operands[places_[slot]], shapes, static_cast<uint32_t>(places_[slot]));
  }
  int32_t dtype_of(Slot slot) const { return places_[slot] < 0 ? 0 : desc_.operands[places_[slot]].dtype; }

  NormSumsArguments sums_of(const ep_shape* shapes) const {
    const OperandShape src = shape(shapes, SRC);
    const OperandShape gradient = shape(shapes, GRADIENT);
    const AxisRange parameters = {axis_, layer_ ? src.rank : axis_ + 1};
    const AxisRange others = layer_ ? AxisRange{0, axis_} : AxisRange{0, src.rank, axis_};
    NormSumsArguments sums{};
    sums.dtype = dtype_of(SRC);
    sums.scale_dtype = dtype_of(SCALE_GRADIENT);
    sums.shift_dtype = dtype_of(SHIFT_GRADIENT);
    sums.by_parameter = layer_ ? 0 : 1;
    sums.kept = axes_between(src, parameters, src, gradient);
    sums.reduced = axes_between(src, others, src, gradient);
    sums.statistics = axes_between(src, layer_ ? others : parameters, shape(shapes, MEAN), shape(shapes, INV_STD));
    sums.parameters = axes_between(src, parameters, shape(shapes, SCALE_GRADIENT), shape(shapes, SHIFT_GRADIENT));
    kernels_.sums.cut(&sums);
    return sums;
  }

  ep_status run_rows(ep_stream* stream, const ep_launch& launch, ep_error** error) const {
    const OperandShape src = shape(launch.shapes, SRC);
    const OperandShape dst = shape(launch.shapes, DST);
    const OperandShape gradient = shape(launch.shapes, GRADIENT);
    const AxisRange outer = {0, axis_};
    const AxisRange inner = {axis_, src.rank};
    LayerBackwardArguments norm{};
    norm.dst = address(launch, DST);
    norm.src = address(launch, SRC);
    norm.gradient = address(launch, GRADIENT);
    norm.scale = address(launch, SCALE);
    norm.mean = address(launch, MEAN);
    norm.inv_std = address(launch, INV_STD);
    norm.dtype = dtype_of(SRC);
    norm.scale_dtype = dtype_of(SCALE);
    norm.rows = axes_between(src, outer, src, gradient);
    norm.dst_rows = axes_between(src, outer, dst, dst);
    norm.statistics = axes_between(src, outer, shape(launch.shapes, MEAN), shape(launch.shapes, INV_STD));
    norm.row = axes_between(src, inner, src, gradient);
    norm.dst_row = axes_between(src, inner, dst, dst);
    const OperandShape scale = shape(launch.shapes, SCALE);
    norm.weights = axes_between(src, inner, scale, scale);
    const Team team = norm.row.count <= warp_row ? Team::WARP : Team::BLOCK;
    const CUfunction function = team == Team::WARP ? kernels_.warp : kernels_.block;
    return launch_kernel(stream, function, geometry_for(norm.rows.count, team), &norm, error);
  }

  ep_status run_elements(ep_stream* stream, const ep_launch& launch, const NormSumsArguments& sums,
                         ep_error** error) const {
    BatchBackwardArguments norm{};
    norm.scale = address(launch, SCALE);
    norm.mean = sums.mean;
    norm.inv_std = sums.inv_std;
    norm.totals = sums.totals;
    norm.scale_dtype = dtype_of(SCALE);
    if (norm.scale != 0) norm.scale_stride = shape(launch.shapes, SCALE).strides[0];
    norm.mean_stride = shape(launch.shapes, MEAN).strides[0];
    norm.inv_std_stride = shape(launch.shapes, INV_STD).strides[0];
    const OperandShape dst = shape(launch.shapes, DST);
    int64_t channels[EP_MAX_RANK] = {};
    channels[axis_] = 1;
    const OperandShape four[] = {
        dst, shape(launch.shapes, SRC), shape(launch.shapes, GRADIENT), {dst.dims, channels, dst.rank}};
    MapOperands operands;
    operands.addresses[0] = address(launch, DST);
    operands.addresses[1] = sums.src;
    operands.addresses[2] = sums.gradient;
    return cut(plan_, folded(plan_, four), operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      norm.map = map_arguments(plan_, piece, of_piece);
      return launch_kernel(stream, kernels_.batch, blocks_for(norm.map.chunks), &norm, error);
    });
  }

  ep_primitive_desc desc_;
  bool layer_;
  int32_t axis_;
  bool has_sums_;
  int32_t places_[slots];
  BackwardKernels kernels_;
  MapPlan plan_;
};

Refusal why_not_backward(const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* found[slots];
  uint32_t count = 0;
  for (int32_t slot = 0; slot < slots; ++slot) {
    found[slot] = operand(desc, roles[slot]);
    if (found[slot] != nullptr) ++count;
  }
  for (const Slot slot : {DST, SRC, MEAN, INV_STD, GRADIENT}) {
    if (found[slot] == nullptr) return Refusal::because("no operand has role %d", roles[slot]);
  }
  if (count != desc.operand_count) return Refusal::because("%u operands", desc.operand_count);
  const ep_operand_desc& src = *found[SRC];
  const int32_t dtype_class = class_of(src.dtype);
  if (dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64)
    return Refusal::because("no kernel normalises %s", dtype_name(src.dtype));
  const int32_t axis = axis_of(desc);
  if (is_scalar(src) || axis < 0 || axis >= src.rank) return Refusal::because("axis %d of rank %d", axis, src.rank);
  const int32_t parameter_rank = is_layer(desc) ? src.rank - axis : 1;
  for (int32_t slot = 0; slot < slots; ++slot) {
    if (found[slot] == nullptr) continue;
    const ep_operand_desc& one = *found[slot];
    const bool whole = slot == DST || slot == SRC || slot == GRADIENT;
    const bool statistic = slot == MEAN || slot == INV_STD;
    const int32_t rank = whole || (statistic && is_layer(desc)) ? src.rank : statistic ? 1 : parameter_rank;
    if (is_scalar(one) || one.rank != rank) return Refusal::because("an operand of rank %d, not %d", one.rank, rank);
    if (Refusal refusal = check_dtype(one.dtype, src.dtype, whole, statistic)) return refusal;
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal make_backward(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out) {
  const int32_t dtype = operand(desc, EP_ROLE_SRC)->dtype;
  const char* type = class_name(class_of(dtype));
  BackwardKernels kernels;
  if (Refusal refusal = NormSums::make(device, dtype, false, &kernels.sums)) return refusal;
  const std::pair<std::string, CUfunction*> functions[] = {
      {fmt::format("layer_backward_{}_warp", type), &kernels.warp},
      {fmt::format("layer_backward_{}_block", type), &kernels.block},
      {fmt::format("batch_backward_{}", type), &kernels.batch}};
  for (const auto& [name, function] : functions) {
    if (Refusal refusal = find_kernel(device, Family::NORM_BACKWARD, name.c_str(), function)) return refusal;
  }
  *out = make_primitive<NormBackwardPrimitive>(device, desc, kernels);
  return {};
}

}  // namespace

Refusal LayerNormBackward::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_backward(desc, info);
}
Refusal LayerNormBackward::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  return make_backward(device, desc, out);
}

Refusal BatchNormBackward::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_backward(desc, info);
}
Refusal BatchNormBackward::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  return make_backward(device, desc, out);
}

}  // namespace tenon::provider::cuda
