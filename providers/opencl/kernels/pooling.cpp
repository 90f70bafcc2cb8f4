// pooling: maximum (with or without positions) and average, with one to three spatial dims.
#include <algorithm>

#include "providers/opencl/kernels/element.h"
#include "providers/opencl/kernels/kernels.h"

namespace tenon::provider::opencl {
namespace {

// Mirrors struct pooling_parameters of programs/pooling.cl.
struct PoolingParameters {
  uint64_t count;
  uint64_t channels;
  uint64_t src[3];
  uint64_t dst[3];
  int64_t kernel_dims[3];
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad_low[3];
  int64_t pad_high[3];
  uint64_t offsets[3];
  uint64_t strides[3][5];
  int32_t op;
  int32_t has_indices;
};

class PoolingPrimitive final : public ep_primitive {
 public:
  PoolingPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        indices_(find_operand(desc, EP_ROLE_DST_INDICES)),
        dtype_(desc.operands[0].dtype) {
    const ep_pooling_attributes& attributes = desc.attributes.pooling;
    const ep_operand_desc& dst = desc.operands[0];
    const ep_operand_desc& src = desc.operands[src_];
    p_.channels = static_cast<uint64_t>(dst.dims[1]);
    p_.count = static_cast<uint64_t>(dst.dims[0]) * p_.channels;
    const int32_t first = 3 - attributes.spatial_rank;
    for (int32_t axis = 0; axis < 3; ++axis) {
      const int32_t from = axis - first;
      p_.src[axis] = from < 0 ? 1 : static_cast<uint64_t>(src.dims[2 + from]);
      p_.dst[axis] = from < 0 ? 1 : static_cast<uint64_t>(dst.dims[2 + from]);
      p_.kernel_dims[axis] = from < 0 ? 1 : attributes.kernel[from];
      p_.stride[axis] = from < 0 ? 1 : attributes.stride[from];
      p_.dilation[axis] = from < 0 ? 1 : attributes.dilation[from];
      p_.pad_low[axis] = from < 0 ? 0 : attributes.pad_low[from];
      p_.pad_high[axis] = from < 0 ? 0 : attributes.pad_high[from];
      p_.count *= p_.dst[axis];
    }
    const int32_t operands[] = {0, src_, indices_};
    for (int32_t slot = 0; slot < 3; ++slot) {
      if (operands[slot] < 0) continue;
      const ep_operand_desc& operand = desc.operands[operands[slot]];
      std::copy_n(operand.strides, 2, p_.strides[slot]);
      std::copy_n(operand.strides + 2, attributes.spatial_rank, p_.strides[slot] + 2 + first);
    }
    p_.op = attributes.op;
    p_.has_indices = indices_ >= 0 ? 1 : 0;
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    PoolingParameters p = p_;
    p.offsets[0] = first_element(launch.operands[0], dtype_);
    p.offsets[1] = first_element(launch.operands[src_], dtype_);
    if (indices_ >= 0) p.offsets[2] = first_element(launch.operands[indices_], EP_DTYPE_i64);
    const cl_mem indices = indices_ < 0 ? nullptr : buffer_of(launch.operands[indices_]);
    return stream.queue->launch({kernel_.get(), groups_for(p.count), group_size},
                                {buffer_of(launch.operands[0]), buffer_of(launch.operands[src_]), indices}, p, error);
  }

 private:
  std::shared_ptr<Kernel> kernel_;
  int32_t src_;
  int32_t indices_;
  int32_t dtype_;
  PoolingParameters p_{};
};

}  // namespace

Refusal Pooling::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_DST_INDICES);
  const ep_operand_desc& dst = desc.operands[0];
  const ep_pooling_attributes& attributes = desc.attributes.pooling;
  if (dst.role != EP_ROLE_DST || src == nullptr || desc.operand_count != (indices == nullptr ? 2U : 3U)) {
    return Refusal::because("its operands are not DST, DST_INDICES and SRC");
  }
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  if (attributes.op < EP_POOLING_MAX || attributes.op > EP_POOLING_AVERAGE_INCLUDE_PAD) {
    return Refusal::because("op %d", attributes.op);
  }
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > 3) {
    return Refusal::because("%d spatial dims", attributes.spatial_rank);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (desc.operands[i].rank == attributes.spatial_rank + 2) continue;
    return Refusal::because("operand %u has rank %d", i, desc.operands[i].rank);
  }
  if (src->dtype != dst.dtype) return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (indices != nullptr && (attributes.op != EP_POOLING_MAX || indices->dtype != EP_DTYPE_i64)) {
    return Refusal::because("positions of %s for op %d", dtype_name(indices->dtype), attributes.op);
  }
  if (attributes.op != EP_POOLING_MAX && !is_floating(dst.dtype)) {
    return Refusal::because("an average of %s", dtype_name(dst.dtype));
  }
  return why_not_computed(device.context->physical, dst.dtype);
}

Refusal Pooling::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string options = type_options(device.context->physical, desc.operands[0].dtype);
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("pooling", options, "pooling", &kernel)) return refusal;
  *out = make_primitive<PoolingPrimitive>(device, desc, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
