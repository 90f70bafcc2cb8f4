// scatter: copies SRC to DST, then combines each update with the element that its indices select.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/elementwise.h"
#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/movement/indexing.h"
#include "providers/cuda/movement/movement.h"

namespace tenon::provider::cuda {
namespace {

enum Slot : int32_t { DST, SRC, UPDATES, INDICES, slots };
constexpr int32_t roles[slots] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_INDICES};

const char* combination_name(int32_t op) {
  switch (op) {
    case EP_SCATTER_ADD: return "add";
    case EP_SCATTER_MUL: return "mul";
    case EP_SCATTER_MIN: return "min";
    default: return "max";
  }
}

// The dtype in which elements of `dtype` are combined: atomic operations have 32 or 64 bits.
int32_t combined_dtype(int32_t dtype) {
  if (dtype_size(dtype) >= 4) return dtype;
  switch (dtype_class(dtype)) {
    case DTypeClass::FLOAT: return EP_DTYPE_f32;
    case DTypeClass::INT: return EP_DTYPE_i32;
    default: return EP_DTYPE_u32;
  }
}

// The number of elements from the first to the last address.
int64_t span_of(const OperandShape& shape) {
  int64_t span = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    if (shape.dims[axis] == 0) return 0;
    span += (shape.dims[axis] - 1) * shape.strides[axis];
  }
  return span;
}

int64_t count_of(const OperandShape& shape) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) count *= shape.dims[axis];
  return count;
}

// The strides of a dense tensor with the dims of `shape`.
struct DenseStrides {
  int64_t at[EP_MAX_RANK] = {};
  explicit DenseStrides(const OperandShape& shape) {
    int64_t count = 1;
    for (int32_t axis = shape.rank - 1; axis >= 0; --axis) {
      at[axis] = count;
      count *= shape.dims[axis];
    }
  }
};

// The kernels of one scatter. `combine` serves all combinations except assignment; `to_wide` and `to_narrow` serve
// narrow types.
struct ScatterKernels {
  Mover mover;
  CUfunction combine = nullptr;
  CUfunction claim = nullptr;
  CUfunction assign = nullptr;
  Map to_wide;
  Map to_narrow;
};

// Finds the kernel that casts from dtype `from` to dtype `to`.
Refusal make_cast(ep_device& device, int32_t to, int32_t from, Map* out) {
  ep_primitive_desc copy{};
  copy.kind = EP_PRIMITIVE_copy;
  copy.operand_count = 2;
  copy.operands[0].role = EP_ROLE_DST;
  copy.operands[0].dtype = to;
  copy.operands[1].role = EP_ROLE_SRC;
  copy.operands[1].dtype = from;
  const Planned planned = plan_elementwise(copy);
  return planned.refusal ? planned.refusal : make_map(device, planned.plan, out);
}

class ScatterPrimitive final : public ep_primitive {
 public:
  ScatterPrimitive(const ep_primitive_desc& desc, const ScatterKernels& kernels)
      : desc_(desc), attributes_(desc.attributes.scatter), kernels_(kernels) {
    for (int32_t slot = 0; slot < slots; ++slot) places_[slot] = find_operand(desc, roles[slot]);
    dtype_ = desc.operands[places_[DST]].dtype;
    wide_ = attributes_.op == EP_SCATTER_ASSIGN ? dtype_ : combined_dtype(dtype_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    CUdeviceptr at[slots];
    for (int32_t slot = 0; slot < slots; ++slot) at[slot] = address_of(launch.operands[places_[slot]]);
    const auto run = [&](const FaultTarget& fault) {
      const CUdeviceptr workspace = address_of(launch.workspace);
      if (attributes_.op == EP_SCATTER_ASSIGN) return assign(stream, launch.shapes, at, workspace, fault, error);
      return wide_ == dtype_ ? combine(stream, launch.shapes, at, fault, error)
                             : combine_wide(stream, launch.shapes, at, workspace, fault, error);
    };
    return launch_watched(stream, launch.tag, places_[INDICES], run, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    const OperandShape dst = shape(shapes, DST);
    if (attributes_.op == EP_SCATTER_ASSIGN)
      return static_cast<uint64_t>(span_of(dst)) * (has_wide_owners(shapes) ? 8 : 4);
    return wide_ == dtype_ ? 0 : static_cast<uint64_t>(count_of(dst)) * 4;
  }
  bool has_workspace() const override { return attributes_.op == EP_SCATTER_ASSIGN || wide_ != dtype_; }

 private:
  OperandShape shape(const ep_shape* shapes, Slot slot) const {
    return shape_of(desc_.operands[places_[slot]], shapes, static_cast<uint32_t>(places_[slot]));
  }
  bool has_wide_owners(const ep_shape* shapes) const { return count_of(shape(shapes, UPDATES)) >= UINT32_MAX; }

  ep_status copy_source(ep_stream* stream, const ep_shape* shapes, const CUdeviceptr* at, ep_error** error) const {
    if (at[DST] == at[SRC]) return EP_STATUS_OK;
    return kernels_.mover.run(stream, shape(shapes, DST), at[DST], shape(shapes, SRC), at[SRC], error);
  }

  // Launches `function` over the updates. The result is at `to` and has `strides`.
  ep_status walk(ep_stream* stream, CUfunction function, const ep_shape* shapes, const CUdeviceptr* at, CUdeviceptr to,
                 const int64_t* strides, CUdeviceptr owners, const FaultTarget& fault, ep_error** error) const {
    const OperandShape dst = shape(shapes, DST);
    const Indexing indexing = indexing_of(attributes_.axis, attributes_.mode, shape(shapes, UPDATES),
                                          {dst.dims, strides, dst.rank}, shape(shapes, INDICES), true);
    MapPlan plan = indexing_plan(dtype_, desc_.operands[places_[INDICES]].dtype, true);
    plan.dtypes[1] = wide_;
    MapOperands operands;
    operands.addresses[0] = at[UPDATES];
    operands.addresses[1] = to;
    operands.addresses[2] = at[INDICES];
    return cut(plan, indexing.shape, operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      IndexArguments index = index_arguments(plan, indexing, piece, of_piece);
      index.map.fault = fault;
      index.wide_owners = has_wide_owners(shapes) ? 1 : 0;
      // A piece has its own address in the result, so its address in the owners, which have the same layout, moves too.
      const auto moved = static_cast<int64_t>(of_piece.addresses[1] - to) / dtype_size(wide_);
      index.owners = owners + static_cast<uint64_t>(moved * (index.wide_owners != 0 ? 8 : 4));
      return launch_kernel(stream, function, blocks_for(index.map.chunks), &index, error);
    });
  }

  ep_status combine(ep_stream* stream, const ep_shape* shapes, const CUdeviceptr* at, const FaultTarget& fault,
                    ep_error** error) const {
    if (const ep_status status = copy_source(stream, shapes, at, error); status != EP_STATUS_OK) return status;
    return walk(stream, kernels_.combine, shapes, at, at[DST], shape(shapes, DST).strides, 0, fault, error);
  }

  ep_status combine_wide(ep_stream* stream, const ep_shape* shapes, const CUdeviceptr* at, CUdeviceptr workspace,
                         const FaultTarget& fault, ep_error** error) const {
    const OperandShape dst = shape(shapes, DST);
    const DenseStrides dense(dst);
    const OperandShape wide = {dst.dims, dense.at, dst.rank};
    ep_status status = cast(stream, kernels_.to_wide, wide, workspace, shape(shapes, SRC), at[SRC], error);
    if (status != EP_STATUS_OK) return status;
    status = walk(stream, kernels_.combine, shapes, at, workspace, dense.at, 0, fault, error);
    if (status != EP_STATUS_OK) return status;
    return cast(stream, kernels_.to_narrow, dst, at[DST], wide, workspace, error);
  }
  static ep_status cast(ep_stream* stream, const Map& map, const OperandShape& dst, CUdeviceptr to,
                        const OperandShape& src, CUdeviceptr from, ep_error** error) {
    const OperandShape both[] = {dst, src};
    MapOperands operands;
    operands.addresses[0] = to;
    operands.addresses[1] = from;
    return map.run(stream, folded(map.plan(), both), operands, 0, error);
  }

  // Owners start at 0; updates count from 1.
  ep_status assign(ep_stream* stream, const ep_shape* shapes, const CUdeviceptr* at, CUdeviceptr owners,
                   const FaultTarget& fault, ep_error** error) const {
    ep_status status = copy_source(stream, shapes, at, error);
    if (status != EP_STATUS_OK) return status;
    const uint64_t bytes = workspace(shapes);
    const CUresult result =
        bytes == 0 ? CUDA_SUCCESS : stream->device->driver->memset_d8_async(owners, 0, bytes, stream->handle);
    if (result != CUDA_SUCCESS) return driver_failed(stream->device, result, "clearing a workspace", error);
    const int64_t* strides = shape(shapes, DST).strides;
    status = walk(stream, kernels_.claim, shapes, at, at[DST], strides, owners, fault, error);
    if (status != EP_STATUS_OK) return status;
    return walk(stream, kernels_.assign, shapes, at, at[DST], strides, owners, {}, error);
  }

  ep_primitive_desc desc_;
  ep_scatter_attributes attributes_;
  ScatterKernels kernels_;
  int32_t places_[slots];
  int32_t dtype_ = 0;
  int32_t wide_ = 0;
};

}  // namespace

Refusal Scatter::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* found[slots];
  for (int32_t slot = 0; slot < slots; ++slot) found[slot] = operand(desc, roles[slot]);
  if (desc.operand_count != slots || std::find(found, found + slots, nullptr) != found + slots)
    return Refusal::because("its operands are not DST, SRC, SRC_B and INDICES");
  const ep_scatter_attributes& attributes = desc.attributes.scatter;
  const int32_t dtype = found[DST]->dtype;
  if (attributes.op < EP_SCATTER_ASSIGN || attributes.op > EP_SCATTER_MAX)
    return Refusal::because("op %d", attributes.op);
  if (found[SRC]->dtype != dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(found[SRC]->dtype), dtype_name(dtype));
  if (is_scalar(*found[SRC]) || found[SRC]->rank != found[DST]->rank)
    return Refusal::because("ranks %d and %d", found[SRC]->rank, found[DST]->rank);
  if (attributes.op != EP_SCATTER_ASSIGN) {
    if (class_of(dtype) == 0 || class_of(dtype) == EP_DTYPE_bool)
      return Refusal::because("no kernel combines %s", dtype_name(dtype));
    if (is_floating(dtype) && (desc.flags & EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0)
      return Refusal::because("updates of %s are combined in any order", dtype_name(dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_no_indexing(attributes.axis, attributes.mode, *found[UPDATES], *found[DST], *found[INDICES]);
}

Refusal Scatter::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t op = desc.attributes.scatter.op;
  const int32_t dtype = operand(desc, EP_ROLE_DST)->dtype;
  ScatterKernels kernels;
  if (Refusal refusal = Mover::make(device, dtype, &kernels.mover)) return refusal;
  if (op == EP_SCATTER_ASSIGN) {
    const std::string name = fmt::format("scatter_assign_{}", dtype_size(dtype));
    if (Refusal refusal = find_kernel(device, Family::INDEX, "scatter_claim", &kernels.claim)) return refusal;
    if (Refusal refusal = find_kernel(device, Family::INDEX, name.c_str(), &kernels.assign)) return refusal;
  } else {
    const int32_t wide = combined_dtype(dtype);
    const std::string name = fmt::format("scatter_{}_{}", combination_name(op), dtype_name(wide));
    if (Refusal refusal = find_kernel(device, Family::INDEX, name.c_str(), &kernels.combine)) return refusal;
    if (wide != dtype) {
      if (Refusal refusal = make_cast(device, wide, dtype, &kernels.to_wide)) return refusal;
      if (Refusal refusal = make_cast(device, dtype, wide, &kernels.to_narrow)) return refusal;
    }
  }
  *out = make_primitive<ScatterPrimitive>(device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
