// Decides which matmuls and convolutions are byte products, and describes the product of each.
#include "providers/cpu/quantised/numbers.h"
#include "providers/cpu/quantised/product.h"
#include "providers/cpu/quantised/quantised.h"

namespace tenon::provider::cpu {
namespace {

bool is_byte(const ep_operand_desc& operand) { return operand.dtype == EP_DTYPE_i8 || operand.dtype == EP_DTYPE_u8; }

// The stride along `axis`; the stride of an axis of length 1 does not matter.
int64_t stride_of(const ep_operand_desc& operand, int32_t axis) {
  return operand.dims[axis] == 1 ? 0 : operand.strides[axis];
}

Refusal why_not_bytes(const ep_primitive_desc& desc, int32_t weight_role) {
  if (is_dynamic(desc)) return Refusal::because("products of bytes need static dims");
  if (desc.epilogue_count != 0) return Refusal::because("%u epilogues of quantised operands", desc.epilogue_count);
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, weight_role);
  const ep_operand_desc& dst = desc.operands[0];
  if (src == nullptr || weight == nullptr || dst.role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if (!is_byte(*src) || !is_byte(*weight)) {
    return Refusal::because("%s by %s, not bytes by bytes", dtype_name(src->dtype), dtype_name(weight->dtype));
  }
  if (!is_byte(dst) && dst.dtype != EP_DTYPE_f32 && dst.dtype != EP_DTYPE_i32) {
    return Refusal::because("a result of %s", dtype_name(dst.dtype));
  }
  const NumberOperands numbers(desc);
  if (is_byte(dst) && numbers.dst_scale < 0 && numbers.dst_zero < 0) {
    return Refusal::because("a result of %s that wraps", dtype_name(dst.dtype));
  }
  return why_no_numbers(desc, weight_role);
}

// True if the sum of `terms` byte products, without zero points, may exceed 32 bits.
bool may_overflow(int64_t terms) { return terms > (int64_t{1} << 31) / (255 * 255); }

// The product of a convolution: of each group, or of all channels if it is depthwise.
ByteProduct convolution_of(const ep_primitive_desc& desc) {
  const ep_convolution_attributes& at = desc.attributes.convolution;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  ByteProduct product;
  product.images = dst.dims[0];
  product.depthwise = at.groups > 1 && at.groups == src.dims[1] && at.groups == dst.dims[1];
  const int64_t groups = product.depthwise ? 1 : at.groups;
  product.in = src.dims[1] / groups;
  product.out = dst.dims[1] / groups;
  for (int32_t i = 0; i < 2; ++i) {
    product.src_strides[i] = stride_of(src, i);
    product.dst_strides[i] = stride_of(dst, i);
    product.weight_strides[i] = stride_of(weight, i);
  }
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    const int32_t to = 2 - at.spatial_rank + i, axis = 2 + i;  // with one spatial dim, an image is one row
    product.src_size[to] = src.dims[axis];
    product.dst_size[to] = dst.dims[axis];
    product.kernel[to] = weight.dims[axis];
    product.stride[to] = at.stride[i];
    product.dilation[to] = at.dilation[i];
    product.pad[to] = at.pad_low[i];
    product.src_strides[2 + to] = stride_of(src, axis);
    product.dst_strides[2 + to] = stride_of(dst, axis);
    product.weight_strides[2 + to] = stride_of(weight, axis);
  }
  // If a row has one pixel, the step between pixels is the step between rows.
  if (product.dst_size[1] == 1)
    product.dst_strides[3] = product.dst_size[0] == 1 ? product.dst_strides[0] : product.dst_strides[2];
  if (product.dst_strides[3] == 0) product.dst_strides[3] = product.out;
  return product;
}

}  // namespace

Refusal QuantisedMatmul::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_not_bytes(desc, EP_ROLE_SRC_B)) return refusal;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const int32_t rank = dst.rank;
  if (rank < 2 || rank > 3) return Refusal::because("rank %d", rank);
  const int64_t terms = src.dims[rank - 1];
  if (may_overflow(terms)) return Refusal::because("sums of %lld products", static_cast<long long>(terms));
  if (terms != 1 && src.strides[rank - 1] != 1) return Refusal::because("the elements of a row are not contiguous");
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  for (int32_t axis = 0; bias != nullptr && axis < rank - 1; ++axis) {
    if (stride_of(*bias, axis) != 0) return Refusal::because("a bias that is not one number per column");
  }
  return {};
}

Refusal QuantisedMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info& info) {
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_SRC_B);
  const int32_t rank = dst.rank, row = rank - 2, column = rank - 1;
  ByteProduct product;
  product.in = src.dims[column];
  product.out = dst.dims[column];
  product.src_size[1] = product.dst_size[1] = dst.dims[row];
  product.src_strides[1] = 1;
  product.src_strides[3] = stride_of(src, row);
  product.dst_strides[1] = stride_of(dst, column);
  product.dst_strides[3] = dst.dims[row] == 1 ? product.out : dst.strides[row];
  product.weight_strides[0] = stride_of(weight, column);
  product.weight_strides[1] = stride_of(weight, row);
  Batch batch;
  if (rank == 3) batch = {dst.dims[0], stride_of(src, 0), stride_of(weight, 0), stride_of(dst, 0)};
  if (batch.count > 1 && batch.weight != 0 && (weight.flags & EP_OPERAND_FLAG_CONSTANT) != 0) {
    return Refusal::because("a batch of constant matrices");
  }
  return make_product(device, desc, product, batch, EP_ROLE_SRC_B, column, out, info);
}

Refusal QuantisedConvolution::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_convolution_attributes& at = desc.attributes.convolution;
  if (at.transposed != 0) return Refusal::because("a transposed convolution");
  if (at.spatial_rank > 2) return Refusal::because("%d spatial dims", at.spatial_rank);
  if (Refusal refusal = why_not_bytes(desc, EP_ROLE_WEIGHT)) return refusal;
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  int64_t terms = 1;
  for (int32_t axis = 1; axis < weight.rank; ++axis) terms *= weight.dims[axis];
  if (may_overflow(terms)) return Refusal::because("sums of %lld products", static_cast<long long>(terms));
  const bool copies_src = convolution_of(desc).joins_taps();  // true: SRC is copied, whatever its strides
  for (const ep_operand_desc* moved : {&desc.operands[0], &src}) {
    if (moved->dims[1] == 1 || moved->strides[1] == 1 || (moved == &src && copies_src)) continue;
    int64_t bytes = dtype_size(moved->dtype);
    for (int32_t axis = 0; axis < moved->rank; ++axis) bytes *= moved->dims[axis];
    info.penalty_bytes += static_cast<uint64_t>(bytes);
  }
  return {};
}

Refusal QuantisedConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                   ep_primitive_info& info) {
  const ByteProduct product = convolution_of(desc);
  Batch batch;
  const int64_t groups = desc.attributes.convolution.groups;
  if (groups > 1 && !product.depthwise) {
    batch = {groups, product.in * product.src_strides[1], product.out * product.weight_strides[0],
             product.out * product.dst_strides[1], true};
  }
  return make_product(device, desc, product, batch, EP_ROLE_WEIGHT, 0, out, info);
}

}  // namespace tenon::provider::cpu
