// convolution and transposed convolution: as a matmul per group, or with one work-item per result if groups are narrow.
#include <algorithm>

#include "providers/opencl/kernels/kernels.h"
#include "providers/opencl/kernels/product.h"

namespace tenon::provider::opencl {
namespace {

constexpr uint64_t narrow_group = 8;  // output channels per group

// Mirrors struct convolution_parameters of programs/convolution.cl.
struct ConvolutionParameters {
  uint64_t images;
  uint64_t groups;
  uint64_t channels;
  uint64_t outputs;
  uint64_t src[3];
  uint64_t dst[3];
  uint64_t kernel_dims[3];
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad[3];
  uint64_t offsets[product_slots];
  uint64_t scalars[2 * EP_MAX_EPILOGUES];
  uint64_t strides[product_slots][5];
  int32_t transposed;
  int32_t unused;
};

uint64_t product_of(const uint64_t (&dims)[3]) { return dims[0] * dims[1] * dims[2]; }

ConvolutionParameters parameters_of(const ep_primitive_desc& desc, const ProductOperands& operands) {
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[operands.at(SLOT_B)];
  const ep_operand_desc& weight = desc.operands[operands.at(SLOT_A)];
  ConvolutionParameters p{};
  p.images = static_cast<uint64_t>(src.dims[0]);
  p.groups = static_cast<uint64_t>(attributes.groups);
  p.channels = static_cast<uint64_t>(src.dims[1]) / p.groups;
  p.outputs = static_cast<uint64_t>(dst.dims[1]) / p.groups;
  p.transposed = attributes.transposed;
  const int32_t first = 3 - attributes.spatial_rank;
  for (int32_t axis = 0; axis < 3; ++axis) {
    const int32_t from = axis - first;
    p.src[axis] = from < 0 ? 1 : static_cast<uint64_t>(src.dims[2 + from]);
    p.dst[axis] = from < 0 ? 1 : static_cast<uint64_t>(dst.dims[2 + from]);
    p.kernel_dims[axis] = from < 0 ? 1 : static_cast<uint64_t>(weight.dims[2 + from]);
    p.stride[axis] = from < 0 ? 1 : attributes.stride[from];
    p.dilation[axis] = from < 0 ? 1 : attributes.dilation[from];
    p.pad[axis] = from < 0 ? 0 : attributes.pad_low[from];
  }
  for (int32_t slot = 0; slot < product_slots; ++slot) {
    if (operands.at(slot) < 0) continue;
    const ep_operand_desc& operand = desc.operands[operands.at(slot)];
    if (slot == SLOT_BIAS) {
      p.strides[slot][1] = static_cast<uint64_t>(operand.strides[0]);
      continue;
    }
    std::copy_n(operand.strides, 2, p.strides[slot]);
    std::copy_n(operand.strides + 2, attributes.spatial_rank, p.strides[slot] + 2 + first);
  }
  return p;
}

class ConvolutionPrimitive final : public ep_primitive {
 public:
  ConvolutionPrimitive(const ep_primitive_desc& desc, bool items, std::shared_ptr<Kernel> kernel)
      : desc_(desc),
        operands_(desc, EP_ROLE_WEIGHT, EP_ROLE_SRC),
        items_(items),
        kernel_(std::move(kernel)),
        parameters_(parameters_of(desc, operands_)) {}

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    ConvolutionParameters p = parameters_;
    std::array<cl_mem, product_slots> b;
    operands_.read(desc_, launch, &b, p.offsets, p.scalars);
    const uint64_t positions = p.images * product_of(p.dst);
    const Dispatch dispatch =
        items_ ? Dispatch{kernel_.get(), groups_for(positions * p.groups * p.outputs), group_size}
               : Dispatch{kernel_.get(), p.groups * tiles_for(p.outputs) * tiles_for(positions), tile_group};
    return stream.queue->launch(dispatch, {b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]}, p, error);
  }

 private:
  ep_primitive_desc desc_;
  ProductOperands operands_;
  bool items_;
  std::shared_ptr<Kernel> kernel_;
  ConvolutionParameters parameters_;
};

}  // namespace

Refusal Convolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  const ProductOperands operands(desc, EP_ROLE_WEIGHT, EP_ROLE_SRC);
  if (Refusal refusal = operands.check(device, desc)) return refusal;
  const int32_t dtype = desc.operands[0].dtype;
  if (!is_floating(dtype)) return Refusal::because("convolution of %s", dtype_name(dtype));
  const int32_t spatial = desc.attributes.convolution.spatial_rank;
  if (spatial < 1 || spatial > 3) return Refusal::because("%d spatial dims", spatial);
  if (desc.attributes.convolution.groups < 1) {
    return Refusal::because("%lld groups", static_cast<long long>(desc.attributes.convolution.groups));
  }
  for (int32_t slot = 0; slot < product_slots; ++slot) {
    if (operands.at(slot) < 0) continue;
    const int32_t rank = desc.operands[operands.at(slot)].rank;
    const int32_t expected = slot == SLOT_BIAS ? 1 : spatial + 2;
    if (rank != expected) return Refusal::because("operand %d has rank %d, not %d", operands.at(slot), rank, expected);
  }
  const ConvolutionParameters p = parameters_of(desc, operands);
  const uint64_t depth = p.channels * product_of(p.kernel_dims);
  if (depth > INT32_MAX || product_of(p.dst) > INT32_MAX) {
    return Refusal::because("%llu products per result of %llu", static_cast<unsigned long long>(depth),
                            static_cast<unsigned long long>(product_of(p.dst)));
  }
  return {};
}

Refusal Convolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const ProductOperands operands(desc, EP_ROLE_WEIGHT, EP_ROLE_SRC);
  const bool items = parameters_of(desc, operands).outputs < narrow_group;
  std::shared_ptr<Kernel> kernel;
  const std::string name = items ? "convolution_item" : "convolution_tile";
  if (Refusal refusal = device.programs->get("convolution", operands.options(device, desc), name, &kernel)) {
    return refusal;
  }
  *out = make_primitive<ConvolutionPrimitive>(device, desc, items, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
