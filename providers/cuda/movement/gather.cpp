#include <algorithm>

#include "providers/cuda/movement/indexing.h"
#include "providers/cuda/movement/movement.h"

namespace tenon::provider::cuda {
namespace {

class GatherPrimitive final : public ep_primitive {
 public:
  GatherPrimitive(const ep_primitive_desc& desc, const SizedKernels& kernels)
      : attributes_(desc.attributes.gather), kernels_(kernels) {
    std::copy_n(desc.operands, 3, operands_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    Indexing indexing =
        indexing_of(attributes_.axis, attributes_.mode, shape_of(operands_[0], launch.shapes, 0),
                    shape_of(operands_[1], launch.shapes, 1), shape_of(operands_[2], launch.shapes, 2), false);
    MapOperands operands;
    for (int32_t i = 0; i < 3; ++i) operands.addresses[i] = address_of(launch.operands[i]);
    MapPlan plan = indexing_plan(bits_dtype(dtype_size(operands_[0].dtype)), operands_[2].dtype, false);
    widen_slices(operands, &plan, &indexing);
    const CUfunction function = kernels_.of(dtype_size(plan.dtypes[0]));
    const auto run = [&](const FaultTarget& fault) {
      return cut(plan, indexing.shape, operands, [&](const MapShape& piece, const MapOperands& of_piece) {
        IndexArguments index = index_arguments(plan, indexing, piece, of_piece);
        index.map.fault = fault;
        return launch_kernel(stream, function, blocks_for(index.map.chunks), &index, error);
      });
    };
    return launch_watched(stream, launch.tag, 2, run, error);
  }

 private:
  // If the innermost axis is part of whole slices, its elements can be moved in larger units.
  static void widen_slices(const MapOperands& operands, MapPlan* plan, Indexing* indexing) {
    if (indexing->shape.strides[2][indexing->shape.rank - 1] != 0) return;
    int64_t strides = 0;
    for (int32_t i = 0; i < indexing->coordinates; ++i) strides |= indexing->strides[i];
    const int64_t before = dtype_size(plan->dtypes[0]);
    widen(2, strides, operands, plan, &indexing->shape);
    const int64_t ratio = dtype_size(plan->dtypes[0]) / before;
    for (int32_t i = 0; i < indexing->coordinates; ++i) indexing->strides[i] /= ratio;
  }

  ep_gather_attributes attributes_;
  ep_operand_desc operands_[3];
  SizedKernels kernels_;
};

}  // namespace

Refusal Gather::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC ||
      desc.operands[2].role != EP_ROLE_INDICES)
    return Refusal::because("its operands are not DST, SRC and INDICES");
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_no_indexing(desc.attributes.gather.axis, desc.attributes.gather.mode, desc.operands[0], desc.operands[1],
                         desc.operands[2]);
}

Refusal Gather::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  SizedKernels kernels;
  if (Refusal refusal = kernels.find(device, Family::INDEX, "gather")) return refusal;
  *out = make_primitive<GatherPrimitive>(device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
