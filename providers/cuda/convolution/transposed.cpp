// A transposed convolution whose windows do not overlap: each element of SRC contributes to one piece of DST. So it is
// a 1 x 1 convolution whose result channels are the elements of the pieces, followed by a copy to their places.
#include <algorithm>
#include <array>
#include <memory>

#include "providers/cuda/convolution/convolution.h"
#include "providers/cuda/convolution/convolution_tail.h"
#include "providers/cuda/movement/mover.h"

namespace tenon::provider::cuda {
namespace {

struct Destroy {
  void operator()(ep_primitive* primitive) const { destroy_primitive(primitive); }
};

Refusal check(const ep_primitive_desc& desc) {
  const ep_convolution_attributes& given = desc.attributes.convolution;
  const ep_operand_desc *src = operand(desc, EP_ROLE_SRC), *weight = operand(desc, EP_ROLE_WEIGHT);
  if (desc.operand_count < 3 || src == nullptr || weight == nullptr) return Refusal::because("an operand is missing");
  if (given.transposed == 0) return Refusal::because("it is not transposed");
  if (is_dynamic(desc)) return Refusal::because("its sizes are not static");
  if (given.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(given.groups));
  if (given.spatial_rank < 1 || given.spatial_rank > 3 || weight->rank != given.spatial_rank + 2)
    return Refusal::because("%d spatial axes", given.spatial_rank);
  // For narrow types, cuDNN has tensor cores.
  if (desc.operands[0].dtype != EP_DTYPE_f32)
    return Refusal::because("results in %s", dtype_name(desc.operands[0].dtype));
  int64_t stride = 1;
  for (int32_t axis = weight->rank - 1; axis > 0; --axis) {
    if (weight->dims[axis] != 1 && weight->strides[axis] != stride)
      return Refusal::because("the elements of a filter are not contiguous");
    stride *= weight->dims[axis];
  }
  for (int32_t axis = 0; axis < given.spatial_rank; ++axis) {
    const int64_t window = weight->dims[axis + 2];
    const bool apart = given.stride[axis] == window && given.dilation[axis] == 1 && given.pad_low[axis] == 0 &&
                       given.pad_high[axis] == 0 && desc.operands[0].dims[axis + 2] == src->dims[axis + 2] * window;
    if (!apart) return Refusal::because("its windows overlap or leave gaps along axis %d", axis);
  }
  return ConvolutionTail::why_not(desc);
}

// The 1 x 1 convolution.
ep_primitive_desc pieces_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  ep_primitive_desc pieces{};
  pieces.kind = EP_PRIMITIVE_convolution;
  pieces.precision = desc.precision;
  pieces.accumulate_dtype = desc.accumulate_dtype;
  pieces.operand_count = 3;
  ep_operand_desc& dst = pieces.operands[0];
  ep_operand_desc& filter = pieces.operands[2];
  dst = pieces.operands[1] = src;
  filter = weight;
  dst.role = EP_ROLE_DST;
  dst.dtype = desc.operands[0].dtype;
  filter.dims[0] = 1;
  for (int32_t axis = 1; axis < weight.rank; ++axis) filter.dims[0] *= weight.dims[axis];
  filter.strides[0] = 1;
  filter.dims[1] = weight.dims[0];
  filter.strides[1] = weight.strides[0];
  for (int32_t axis = 2; axis < weight.rank; ++axis) filter.dims[axis] = filter.strides[axis] = 1;
  dst.dims[1] = filter.dims[0];
  set_dense_strides(&dst, false);
  ep_convolution_attributes& attributes = pieces.attributes.convolution;
  attributes.spatial_rank = desc.attributes.convolution.spatial_rank;
  attributes.groups = 1;
  for (int32_t axis = 0; axis < attributes.spatial_rank; ++axis)
    attributes.stride[axis] = attributes.dilation[axis] = 1;
  return pieces;
}

class TransposedPrimitive final : public ep_primitive {
 public:
  struct Parts {
    std::unique_ptr<ep_primitive, Destroy> product;
    Mover mover;
    ConvolutionTail tail;
  };

  TransposedPrimitive(const ep_primitive_desc& desc, Parts parts)
      : desc_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        weight_(find_operand(desc, EP_ROLE_WEIGHT)),
        parts_(std::move(parts)) {
    int64_t elements = 1;
    for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) elements *= desc.operands[0].dims[axis];
    piece_bytes_ = part_bytes(elements, dtype_size(desc.operands[0].dtype));
  }

  uint64_t workspace(const ep_shape*) const override { return piece_bytes_ + parts_.product->workspace(nullptr); }
  bool has_workspace() const override { return true; }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const ep_buffer operands[] = {launch.workspace, launch.operands[src_], launch.operands[weight_]};
    ep_launch product = launch;
    product.operands = operands;
    product.operand_count = 3;
    product.scalar_count = 0;
    product.workspace = behind(launch.workspace, piece_bytes_);
    ep_status status = parts_.product->launch(stream, product, error);
    if (status == EP_STATUS_OK) status = place(stream, launch, error);
    return status == EP_STATUS_OK ? parts_.tail.run(stream, launch, launch.operands[0], error) : status;
  }

 private:
  // Copies [images, outputs, window..., positions...] to DST.
  ep_status place(ep_stream* stream, const ep_launch& launch, ep_error** error) const {
    const ep_operand_desc &dst = desc_.operands[0], &src = desc_.operands[src_], &weight = desc_.operands[weight_];
    const int32_t spatial = desc_.attributes.convolution.spatial_rank, rank = 2 + 2 * spatial;
    int64_t dims[EP_MAX_RANK] = {dst.dims[0], dst.dims[1]}, to[EP_MAX_RANK] = {dst.strides[0], dst.strides[1]};
    for (int32_t axis = 0; axis < spatial; ++axis) {
      const int64_t window = weight.dims[axis + 2];
      dims[2 + axis] = window;
      to[2 + axis] = dst.strides[axis + 2];
      dims[2 + spatial + axis] = src.dims[axis + 2];
      to[2 + spatial + axis] = window * dst.strides[axis + 2];
    }
    int64_t from[EP_MAX_RANK];
    int64_t stride = 1;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      from[axis] = stride;
      stride *= dims[axis];
    }
    return parts_.mover.run(stream, {dims, to, rank}, address_of(launch.operands[0]), {dims, from, rank},
                            address_of(launch.workspace), error);
  }

  ep_primitive_desc desc_;
  int32_t src_;
  int32_t weight_;
  Parts parts_;
  uint64_t piece_bytes_ = 0;
};

}  // namespace

Refusal TransposedProduct::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = check(desc)) return refusal;
  if (Refusal refusal = Convolution::why_not(device, pieces_of(desc), info)) return refusal;
  for (uint32_t i = 0; i < desc.operand_count; ++i) info.alignment[i] = info.alignment[0];
  return {};
}

Refusal TransposedProduct::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info& info) {
  TransposedPrimitive::Parts parts;
  ep_primitive* product = nullptr;
  if (Refusal refusal = PreferredProduct::make(device, pieces_of(desc), &product, info)) return refusal;
  parts.product.reset(product);
  if (Refusal refusal = Mover::make(device, desc.operands[0].dtype, &parts.mover)) return refusal;
  if (Refusal refusal = ConvolutionTail::make(device, desc, false, &parts.tail)) return refusal;
  info.host_bytes += sizeof(TransposedPrimitive);
  *out = make_primitive<TransposedPrimitive>(device, desc, std::move(parts));
  return {};
}

}  // namespace tenon::provider::cuda
