#include <algorithm>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/ordering/ordering.h"
#include "providers/cuda/ordering/pieces.h"
#include "providers/cuda/reduction/axes.h"

namespace tenon::provider::cuda {
namespace {

enum Slot : int32_t { DST, COUNT, SRC, slots };
constexpr int32_t roles[slots] = {EP_ROLE_DST, EP_ROLE_DST_COUNT, EP_ROLE_SRC};

// In launch order.
struct NonzeroKernels {
  CUfunction count = nullptr;
  CUfunction offset = nullptr;
  CUfunction write = nullptr;
};

class NonzeroPrimitive final : public ep_primitive {
 public:
  NonzeroPrimitive(const ep_device& on, const ep_primitive_desc& desc, const NonzeroKernels& kernels)
      : desc_(desc), processors_(on.facts.processors), kernels_(kernels) {
    for (int32_t slot = 0; slot < slots; ++slot) places_[slot] = find_operand(desc, roles[slot]);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const auto address = [&](Slot slot) { return address_of(launch.operands[places_[slot]]); };
    const OperandShape src = shape(launch.shapes, SRC);
    const OperandShape dst = shape(launch.shapes, DST);
    const int32_t dtype = desc_.operands[places_[SRC]].dtype;
    NonzeroArguments nonzero{};
    nonzero.axes = row_major_axes(src);
    nonzero.pieces = pieces_of(nonzero.axes.count, processors_);
    nonzero.pieces.counts = address_of(launch.workspace);
    nonzero.pieces.total = address(COUNT);
    nonzero.src = address(SRC);
    nonzero.dst = address(DST);
    nonzero.size = dtype_size(dtype);
    nonzero.is_float = is_floating(dtype) ? 1 : 0;
    nonzero.rows = dst.dims[0];
    std::copy_n(dst.strides, 2, nonzero.dst_strides);
    nonzero.rank = src.rank;
    std::copy_n(src.dims, src.rank, nonzero.dims);
    const Geometry geometry = geometry_of(nonzero.pieces);
    ep_status status = launch_kernel(stream, kernels_.count, geometry, &nonzero, error);
    if (status != EP_STATUS_OK) return status;
    status = launch_kernel(stream, kernels_.offset, {1, row_block}, &nonzero.pieces, error);
    if (status != EP_STATUS_OK) return status;
    return launch_kernel(stream, kernels_.write, geometry, &nonzero, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    return counts_bytes(pieces_of(row_major_axes(shape(shapes, SRC)).count, processors_));
  }
  bool has_workspace() const override { return true; }

 private:
  OperandShape shape(const ep_shape* shapes, Slot slot) const {
    return shape_of(desc_.operands[places_[slot]], shapes, static_cast<uint32_t>(places_[slot]));
  }

  ep_primitive_desc desc_;
  int32_t places_[slots];
  int64_t processors_;
  NonzeroKernels kernels_;
};

}  // namespace

Refusal Nonzero::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* found[slots];
  for (int32_t slot = 0; slot < slots; ++slot) found[slot] = operand(desc, roles[slot]);
  if (desc.operand_count != slots || std::find(found, found + slots, nullptr) != found + slots)
    return Refusal::because("its operands are not DST, DST_COUNT and SRC");
  if (class_of(found[SRC]->dtype) == 0) return Refusal::because("no kernel reads %s", dtype_name(found[SRC]->dtype));
  for (const Slot slot : {DST, COUNT}) {
    if (found[slot]->dtype != EP_DTYPE_i64) return Refusal::because("positions of %s", dtype_name(found[slot]->dtype));
  }
  if (is_scalar(*found[SRC]) || found[DST]->rank != 2 || found[COUNT]->rank != 1)
    return Refusal::because("ranks %d, %d and %d", found[DST]->rank, found[COUNT]->rank, found[SRC]->rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Nonzero::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  NonzeroKernels kernels;
  if (Refusal refusal = find_kernel(device, Family::SELECT, "nonzero_count_block", &kernels.count)) return refusal;
  if (Refusal refusal = find_kernel(device, Family::SELECT, "select_offset_block", &kernels.offset)) return refusal;
  if (Refusal refusal = find_kernel(device, Family::SELECT, "nonzero_write_block", &kernels.write)) return refusal;
  *out = make_primitive<NonzeroPrimitive>(device, device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
