// layer_norm, rms_norm and group_norm: each row is normalised by its own statistics.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/kernels/element.h"
#include "providers/cuda/normalization/normalization.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t held_warp = held_warp_chunks * map_chunk * row_warp;
constexpr int64_t held_warp_long = held_warp_long_chunks * map_chunk * row_warp;
constexpr int64_t held_block = held_block_chunks * map_chunk * row_block;
constexpr int64_t held_block_long = held_block_long_chunks * map_chunk * row_block;

constexpr int64_t most_parts = 256;  // a block combines one part per thread
constexpr uint64_t moments_bytes = 2 * sizeof(float);

constexpr const char* kernel_names[norm_kernels] = {"warp",       "block",           "warp_held",     "warp_held_long",
                                                    "block_held", "block_held_long", "block_moments", "block_parts"};

// The first normalised axis; for group_norm the channel axis, which the groups divide.
int32_t first_axis(const ep_primitive_desc& desc) {
  switch (desc.kind) {
    case EP_PRIMITIVE_layer_norm: return desc.attributes.layer_norm.axis;
    case EP_PRIMITIVE_rms_norm: return desc.attributes.rms_norm.axis;
    default: return 1;
  }
}

void add_axis(AxisSet* axes, int64_t dim, int64_t src, int64_t dst) {
  axes->count *= dim;
  if (dim == 1) return;
  axes->dims[axes->rank] = dim;
  axes->src[axes->rank] = src;
  axes->dst[axes->rank] = dst;
  ++axes->rank;
}

AxisSet finished(AxisSet axes) {
  if (axes.rank == 0) {
    axes.rank = 1;
    axes.dims[0] = 1;
  }
  merge_axes(&axes);
  return axes;
}

bool is_aligned(uint64_t address, int64_t size, int64_t stride, const AxisSet& rows, const int64_t* strides) {
  return address == 0 || (stride == 1 && rows_are_aligned(address, size, rows, strides));
}

class NormPrimitive final : public ep_primitive {
 public:
  NormPrimitive(const ep_primitive_desc& desc, const CUfunction* functions)
      : desc_(desc),
        dynamic_(is_dynamic(desc)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        scale_(find_operand(desc, EP_ROLE_SCALE)),
        shift_(find_operand(desc, EP_ROLE_SHIFT)),
        mean_(find_operand(desc, EP_ROLE_MEAN)),
        inv_std_(find_operand(desc, EP_ROLE_INV_STD)) {
    std::copy_n(functions, norm_kernels, functions_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "%s has no launch scalar 0 (eps).", kind_name(desc_.kind));
    NormArguments norm{};
    const auto place = [&](int32_t i) { return i < 0 ? 0 : address_of(launch.operands[i]); };
    const auto dtype = [&](int32_t i) { return i < 0 ? 0 : desc_.operands[i].dtype; };
    norm.src = place(src_);
    norm.dst = place(0);
    norm.scale = place(scale_);
    norm.shift = place(shift_);
    norm.mean = place(mean_);
    norm.inv_std = place(inv_std_);
    norm.dtype = dtype(0);
    norm.scale_dtype = dtype(scale_);
    norm.shift_dtype = dtype(shift_);
    norm.scale_size = dtype_size(norm.scale_dtype);
    norm.shift_size = dtype_size(norm.shift_dtype);
    norm.centred = desc_.kind == EP_PRIMITIVE_rms_norm ? 0 : 1;
    const uint64_t eps = parameter_bits(launch.scalars[0], EP_DTYPE_f64);
    std::memcpy(&norm.eps, &eps, sizeof eps);
    set_axes(launch.shapes, &norm);
    norm.moments = address_of(launch.workspace);
    return run(stream, norm, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    NormArguments norm{};
    set_axes(shapes, &norm);
    const NormPlan plan = plan_of(norm);
    return plan.parts == 1 ? 0 : static_cast<uint64_t>(norm.rows.count * plan.parts) * moments_bytes;
  }
  bool has_workspace() const override { return dynamic_ || workspace(nullptr) != 0; }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    if (i < 0) return {nullptr, nullptr, 0};
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  void set_axes(const ep_shape* shapes, NormArguments* norm) const {
    const OperandShape src = shape(shapes, src_);
    const OperandShape dst = shape(shapes, 0);
    const OperandShape scale = shape(shapes, scale_);
    const OperandShape shift = shape(shapes, shift_);
    const OperandShape mean = shape(shapes, mean_);
    const OperandShape inv_std = shape(shapes, inv_std_);
    // Stride 0 for an absent operand, and for an operand without this axis.
    const auto along = [](const OperandShape& of, int32_t axis) { return axis < of.rank ? of.strides[axis] : 0; };
    AxisSet rows{}, statistics{}, row_weights{}, row{}, weights{};
    for (AxisSet* axes : {&rows, &statistics, &row_weights, &row, &weights}) axes->count = 1;
    const int32_t first = first_axis(desc_);
    for (int32_t axis = 0; axis < first; ++axis) {
      add_axis(&rows, src.dims[axis], src.strides[axis], dst.strides[axis]);
      add_axis(&statistics, src.dims[axis], along(mean, axis), along(inv_std, axis));
      add_axis(&row_weights, src.dims[axis], 0, 0);
    }
    const bool grouped = desc_.kind == EP_PRIMITIVE_group_norm;
    if (grouped) {
      const int64_t groups = desc_.attributes.group_norm.groups;
      const int64_t channels = src.dims[1] / groups;
      add_axis(&rows, groups, channels * src.strides[1], channels * dst.strides[1]);
      add_axis(&statistics, groups, along(mean, 1), along(inv_std, 1));
      add_axis(&row_weights, groups, channels * along(scale, 0), channels * along(shift, 0));
    }
    for (int32_t axis = first; axis < src.rank; ++axis) {
      const bool split = grouped && axis == 1;
      const int64_t dim = split ? src.dims[1] / desc_.attributes.group_norm.groups : src.dims[axis];
      const bool weighted = !grouped || split;
      add_axis(&row, dim, src.strides[axis], dst.strides[axis]);
      add_axis(&weights, dim, weighted ? along(scale, axis - first) : 0, weighted ? along(shift, axis - first) : 0);
    }
    norm->rows = finished(rows);
    norm->statistics = finished(statistics);
    norm->row_weights = finished(row_weights);
    norm->row = finished(row);
    norm->weights = finished(weights);
  }

  static bool is_contiguous(const NormArguments& norm) {
    return norm.row.rank == 1 && norm.row.src[0] == 1 && norm.row.dst[0] == 1;
  }
  // True if consecutive elements share a weight.
  static bool repeats(const AxisSet& weights) {
    return weights.rank == 2 && weights.src[1] == 0 && weights.dst[1] == 0;
  }

  NormPlan plan_of(const NormArguments& norm) const {
    const bool may_be_held = is_contiguous(norm) && desc_.operands[0].dtype != EP_DTYPE_f64 &&
                             (norm.weights.rank == 1 || repeats(norm.weights)) &&
                             norm.rows.count <= most_blocks / most_parts &&
                             norm.row.count <= std::numeric_limits<int32_t>::max();
    return plan_norm(norm.row.count, may_be_held);
  }

  ep_status run(ep_stream* stream, NormArguments& norm, ep_error** error) const {
    const AxisSet& weights = norm.weights;
    const int64_t size = dtype_size(norm.dtype);
    norm.run = repeats(weights) ? static_cast<uint32_t>(weights.dims[1]) : 1;
    norm.vector = is_contiguous(norm) && norm.row.count % map_chunk == 0 &&
                  rows_are_aligned(norm.src, size, norm.rows, norm.rows.src) &&
                  rows_are_aligned(norm.dst, size, norm.rows, norm.rows.dst);
    norm.weights_vector =
        norm.run == 1 && norm.row.count % map_chunk == 0 &&
        is_aligned(norm.scale, norm.scale_size, weights.src[0], norm.row_weights, norm.row_weights.src) &&
        is_aligned(norm.shift, norm.shift_size, weights.dst[0], norm.row_weights, norm.row_weights.dst);
    const NormPlan plan = plan_of(norm);
    norm.parts = static_cast<uint32_t>(plan.parts);
    norm.part_length = plan.part_length;
    const Geometry geometry = geometry_for(norm.rows.count * plan.parts, plan.team);
    if (plan.kernel == NormKernel::PARTS) {
      const ep_status status = launch_kernel(stream, function_of(NormKernel::MOMENTS), geometry, &norm, error);
      if (status != EP_STATUS_OK) return status;
    }
    return launch_kernel(stream, function_of(plan.kernel), geometry, &norm, error);
  }
  CUfunction function_of(NormKernel kernel) const { return functions_[static_cast<size_t>(kernel)]; }

  ep_primitive_desc desc_;
  bool dynamic_;
  int32_t src_;
  int32_t scale_;
  int32_t shift_;
  int32_t mean_;
  int32_t inv_std_;
  CUfunction functions_[norm_kernels] = {};
};

// Refuses a weight or a statistic with another dtype or rank.
Refusal check_operand(const ep_primitive_desc& desc, uint32_t i) {
  const ep_operand_desc& one = desc.operands[i];
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t rank = desc.operands[0].rank;
  const bool grouped = desc.kind == EP_PRIMITIVE_group_norm;
  int32_t wanted = 0;
  switch (one.role) {
    case EP_ROLE_DST:
    case EP_ROLE_SRC:
      wanted = rank;
      if (one.dtype != dtype)
        return Refusal::because("a source of %s, a result of %s", dtype_name(one.dtype), dtype_name(dtype));
      break;
    case EP_ROLE_SCALE:
    case EP_ROLE_SHIFT:
      wanted = grouped ? 1 : rank - first_axis(desc);
      if (class_of(one.dtype) != class_of(dtype))
        return Refusal::because("operand %u is %s, the result %s", i, dtype_name(one.dtype), dtype_name(dtype));
      break;
    case EP_ROLE_MEAN:
    case EP_ROLE_INV_STD:
      wanted = grouped ? 2 : rank;
      if (one.dtype != class_of(dtype))
        return Refusal::because("a statistic of %s for %s", dtype_name(one.dtype), dtype_name(dtype));
      break;
    default: return Refusal::because("operand %u has role %d", i, one.role);
  }
  if (is_scalar(one) || one.rank != wanted)
    return Refusal::because("operand %u has rank %d, not %d", i, one.rank, wanted);
  return {};
}

}  // namespace

NormPlan plan_norm(int64_t length, bool may_be_held) {
  if (may_be_held) {
    if (length <= held_warp) return {Team::WARP, NormKernel::WARP_HELD};
    if (length <= held_warp_long) return {Team::WARP, NormKernel::WARP_HELD_LONG};
    if (length <= held_block) return {Team::BLOCK, NormKernel::BLOCK_HELD};
    if (length <= held_block_long) return {Team::BLOCK, NormKernel::BLOCK_HELD_LONG};
    const int64_t pieces = (length + held_block - 1) / held_block;
    const int64_t part_length = (pieces + most_parts - 1) / most_parts * held_block;
    return {Team::BLOCK, NormKernel::PARTS, (length + part_length - 1) / part_length, part_length};
  }
  if (length <= held_warp) return {Team::WARP, NormKernel::WARP};
  return {Team::BLOCK, NormKernel::BLOCK};
}

Refusal Norm::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operands[0].role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr)
    return Refusal::because("it has no DST or no SRC");
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t dtype_class = class_of(dtype);
  if (dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64)
    return Refusal::because("no kernel normalises %s", dtype_name(dtype));
  const int32_t first = first_axis(desc);
  if (first < 0 || first >= desc.operands[0].rank)
    return Refusal::because("axis %d of rank %d", first, desc.operands[0].rank);
  if (desc.kind == EP_PRIMITIVE_group_norm && desc.attributes.group_norm.groups < 1)
    return Refusal::because("%lld groups", static_cast<long long>(desc.attributes.group_norm.groups));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (Refusal refusal = check_operand(desc, i)) return refusal;
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Norm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const bool is_f64 = desc.operands[0].dtype == EP_DTYPE_f64;
  CUfunction functions[norm_kernels] = {};
  for (size_t i = 0; i < (is_f64 ? norm_kernels_f64 : norm_kernels); ++i) {
    const std::string name = fmt::format("norm_{}_{}", is_f64 ? "f64" : "f32", kernel_names[i]);
    if (Refusal refusal = find_kernel(device, Family::NORM, name.c_str(), &functions[i])) return refusal;
  }
  *out = make_primitive<NormPrimitive>(device, desc, functions);
  return {};
}

}  // namespace tenon::provider::cuda
