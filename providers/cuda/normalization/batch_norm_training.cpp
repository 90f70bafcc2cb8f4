// batch_norm with the statistics of its own batch: computes them first, then runs the kernel of batch_norm.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "providers/cuda/elementwise/map.h"
#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/normalization/norm_sums.h"
#include "providers/cuda/normalization/normalization.h"

namespace tenon::provider::cuda {
namespace {

enum Slot : int32_t { DST, MEAN, INV_STD, SRC, SCALE, SHIFT, slots };
constexpr int32_t roles[slots] = {EP_ROLE_DST, EP_ROLE_MEAN,  EP_ROLE_INV_STD,
                                  EP_ROLE_SRC, EP_ROLE_SCALE, EP_ROLE_SHIFT};

class BatchNormTrainingPrimitive final : public ep_primitive {
 public:
  BatchNormTrainingPrimitive(const ep_primitive_desc& desc, const NormSums& sums, CUfunction function)
      : desc_(desc), axis_(desc.attributes.batch_norm_training.axis), sums_(sums), function_(function) {
    for (int32_t slot = 0; slot < slots; ++slot) places_[slot] = find_operand(desc, roles[slot]);
    plan_.count = 3;
    plan_.dtypes[0] = plan_.dtypes[1] = desc.operands[places_[DST]].dtype;
    plan_.dtypes[2] = EP_DTYPE_u8;  // a stride of 1 is then one channel
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm_training has no launch scalar 0 (eps).");
    const auto address = [&](Slot slot) { return places_[slot] < 0 ? 0 : address_of(launch.operands[places_[slot]]); };
    NormSumsArguments sums = sums_of(launch.shapes);
    sums.src = address(SRC);
    sums.mean = address(MEAN);
    sums.inv_std = address(INV_STD);
    sums.totals = address_of(launch.workspace);
    sums.sums = sums.totals + sums_.totals_bytes(sums);
    const uint64_t eps = parameter_bits(launch.scalars[0], EP_DTYPE_f64);
    std::memcpy(&sums.eps, &eps, sizeof eps);
    if (const ep_status status = sums_.run(stream, sums, error); status != EP_STATUS_OK) return status;

    BatchNormArguments norm{};
    norm.eps = sums.eps;
    const int32_t statistic = desc_.operands[places_[MEAN]].dtype;
    const Slot given[] = {SCALE, SHIFT, MEAN};
    for (size_t i = 0; i < 3; ++i) {
      norm.addresses[i] = address(given[i]);
      if (places_[given[i]] < 0) continue;
      norm.strides[i] = shape(launch.shapes, given[i]).strides[0];
      norm.dtypes[i] = desc_.operands[places_[given[i]]].dtype;
    }
    norm.addresses[3] = sums.totals;
    norm.strides[3] = 1;
    norm.dtypes[3] = statistic;
    const OperandShape dst = shape(launch.shapes, DST);
    int64_t channels[EP_MAX_RANK] = {};
    channels[axis_] = 1;
    const OperandShape three[] = {dst, shape(launch.shapes, SRC), {dst.dims, channels, dst.rank}};
    MapOperands operands;
    operands.addresses[0] = address(DST);
    operands.addresses[1] = address(SRC);
    return cut(plan_, folded(plan_, three), operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      norm.map = map_arguments(plan_, piece, of_piece);
      return launch_kernel(stream, function_, blocks_for(norm.map.chunks), &norm, error);
    });
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    const NormSumsArguments sums = sums_of(shapes);
    return sums_.totals_bytes(sums) + sums_.sums_bytes(sums);
  }
  bool has_workspace() const override { return true; }

 private:
  OperandShape shape(const ep_shape* shapes, Slot slot) const {
    return shape_of(desc_.operands[places_[slot]], shapes, static_cast<uint32_t>(places_[slot]));
  }
  NormSumsArguments sums_of(const ep_shape* shapes) const {
    NormSumsArguments sums{};
    const OperandShape src = shape(shapes, SRC);
    sums.dtype = desc_.operands[places_[SRC]].dtype;
    sums.by_parameter = 1;
    sums.kept = axes_between(src, {axis_, axis_ + 1}, src, src);
    sums.reduced = axes_between(src, {0, src.rank, axis_}, src, src);
    sums.statistics = axes_between(src, {axis_, axis_ + 1}, shape(shapes, MEAN), shape(shapes, INV_STD));
    sums_.cut(&sums);
    return sums;
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  int32_t places_[slots];
  NormSums sums_;
  CUfunction function_;
  MapPlan plan_;
};

}  // namespace

Refusal BatchNormTraining::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* found[slots];
  uint32_t count = 0;
  for (int32_t slot = 0; slot < slots; ++slot) {
    found[slot] = operand(desc, roles[slot]);
    if (found[slot] != nullptr) ++count;
  }
  if (found[DST] == nullptr || found[SRC] == nullptr || found[MEAN] == nullptr || found[INV_STD] == nullptr ||
      count != desc.operand_count)
    return Refusal::because("its operands are not DST, MEAN, INV_STD, SRC and weights");
  const ep_operand_desc& src = *found[SRC];
  const int32_t dtype_class = class_of(src.dtype);
  if (dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64)
    return Refusal::because("no kernel normalises %s", dtype_name(src.dtype));
  const int32_t axis = desc.attributes.batch_norm_training.axis;
  if (is_scalar(src) || axis < 0 || axis >= src.rank) return Refusal::because("axis %d of rank %d", axis, src.rank);
  for (int32_t slot = 0; slot < slots; ++slot) {
    if (found[slot] == nullptr) continue;
    const ep_operand_desc& one = *found[slot];
    const bool whole = slot == DST || slot == SRC;
    const bool statistic = slot == MEAN || slot == INV_STD;
    if (is_scalar(one) || one.rank != (whole ? src.rank : 1))
      return Refusal::because("an operand of rank %d", one.rank);
    if (Refusal refusal = check_dtype(one.dtype, src.dtype, whole, statistic)) return refusal;
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal BatchNormTraining::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  const int32_t dtype = operand(desc, EP_ROLE_SRC)->dtype;
  NormSums sums;
  if (Refusal refusal = NormSums::make(device, dtype, true, &sums)) return refusal;
  const std::string name = fmt::format("batch_norm_{}", class_name(class_of(dtype)));
  CUfunction function = nullptr;
  if (Refusal refusal = find_kernel(device, Family::NORM, name.c_str(), &function)) return refusal;
  *out = make_primitive<BatchNormTrainingPrimitive>(device, desc, sums, function);
  return {};
}

}  // namespace tenon::provider::cuda
