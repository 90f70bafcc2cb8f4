#include "providers/cuda/normalization/norm_sums.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "providers/cuda/elementwise/scalar_value.h"

namespace tenon::provider::cuda {

AxisSet axes_between(const OperandShape& dims, const AxisRange& range, const OperandShape& src,
                     const OperandShape& dst) {
  AxisSet axes{};
  axes.count = 1;
  const auto along = [&](const OperandShape& of, int32_t axis) {
    const int32_t own = of.rank == dims.rank ? axis : axis - range.from;
    return own < of.rank ? of.strides[own] : 0;
  };
  for (int32_t axis = range.from; axis < range.to; ++axis) {
    if (axis == range.without || dims.dims[axis] == 1) continue;
    axes.count *= dims.dims[axis];
    axes.dims[axes.rank] = dims.dims[axis];
    axes.src[axes.rank] = along(src, axis);
    axes.dst[axes.rank] = along(dst, axis);
    ++axes.rank;
  }
  if (axes.rank == 0) axes.dims[axes.rank++] = 1;
  merge_axes(&axes);
  return axes;
}

Refusal check_dtype(int32_t dtype, int32_t src, bool whole, bool statistic) {
  const bool fits = whole ? dtype == src : statistic ? dtype == class_of(src) : class_of(dtype) == class_of(src);
  return fits ? Refusal() : Refusal::because("operands of %s and %s", dtype_name(src), dtype_name(dtype));
}

Refusal NormSums::make(ep_device& device, int32_t dtype, bool moments, NormSums* out) {
  const bool is_f64 = dtype == EP_DTYPE_f64;
  const char* type = is_f64 ? "f64" : "f32";
  const char* what = moments ? "moments_" : "";
  out->processors_ = device.facts.processors;
  out->size_ = is_f64 ? 8 : 4;
  const std::pair<std::string, CUfunction*> functions[] = {
      {fmt::format("norm_sums_{}{}_solo", what, type), &out->solo_},
      {fmt::format("norm_sums_{}{}_block", what, type), &out->block_},
      {fmt::format("norm_sums_{}_{}_warp", moments ? "variance" : "totals", type), &out->totals_}};
  for (const auto& [name, function] : functions) {
    if (Refusal refusal = find_kernel(device, Family::NORM_BACKWARD, name.c_str(), function)) return refusal;
  }
  return {};
}

Team NormSums::team_of(const NormSumsArguments& sums) const {
  return plan_reduce(sums.kept, sums.reduced, processors_).team == Team::SOLO ? Team::SOLO : Team::BLOCK;
}

void NormSums::cut(NormSumsArguments* sums) const {
  const ReducePlan plan = plan_reduce(sums->kept, sums->reduced, processors_);
  sums->parts = plan.parts;
  sums->part_length = plan.part_length;
}

uint64_t NormSums::sums_bytes(const NormSumsArguments& sums) const {
  return static_cast<uint64_t>(sums.kept.count * sums.parts * 2 * size_);
}
uint64_t NormSums::totals_bytes(const NormSumsArguments& sums) const {
  return static_cast<uint64_t>(sums.kept.count * 2 * size_);
}

ep_status NormSums::run(ep_stream* stream, const NormSumsArguments& sums, ep_error** error) const {
  const Team team = team_of(sums);
  const Geometry geometry = geometry_for(sums.kept.count * sums.parts, team);
  const ep_status status = launch_kernel(stream, team == Team::SOLO ? solo_ : block_, geometry, &sums, error);
  if (status != EP_STATUS_OK) return status;
  return launch_kernel(stream, totals_, geometry_for(sums.kept.count, Team::WARP), &sums, error);
}

}  // namespace tenon::provider::cuda
