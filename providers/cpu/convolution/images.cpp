#include "providers/cpu/convolution/images.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::provider::cpu {
namespace {

// True if planes are contiguous, one after the other.
bool is_channels_first(const ep_operand_desc& operand) {
  int64_t step = 1;
  for (int32_t axis = operand.rank; axis-- > 0;) {
    if (operand.dims[axis] != 1 && operand.strides[axis] != step) return false;
    step *= operand.dims[axis];
  }
  return true;
}

// The steps of a Finish, in order.
enum class Place : uint8_t { other, low, high, none };

Place place_of(const ep_primitive_desc& desc, const ep_epilogue& epilogue) {
  if (epilogue.arity == 1) return epilogue.op == EP_UNARY_relu ? Place::low : Place::none;
  if (epilogue.role == 0) {
    return epilogue.op == EP_BINARY_maximum ? Place::low : epilogue.op == EP_BINARY_minimum ? Place::high : Place::none;
  }
  const ep_operand_desc* other = operand(desc, epilogue.role);
  const bool alike = other != nullptr && lies_as_dst(desc, *other);
  return epilogue.op == EP_BINARY_add && alike ? Place::other : Place::none;
}

// The number of leading epilogues that a Finish computes.
uint32_t finish_count(const ep_primitive_desc& desc) {
  uint32_t count = 0;
  auto next = Place::other;  // the first step that is not used yet
  while (count < desc.epilogue_count) {
    const Place place = place_of(desc, desc.epilogues[count]);
    if (place == Place::none || place < next) break;
    next = static_cast<Place>(static_cast<uint8_t>(place) + 1);
    ++count;
  }
  return count;
}

}  // namespace

bool is_channels_last(const ep_operand_desc& operand) {
  int64_t step = 1;
  for (int32_t i = 0; i < operand.rank; ++i) {
    const int32_t axis = i == 0 ? 1 : i + 1 == operand.rank ? 0 : operand.rank - i;
    if (operand.dims[axis] != 1 && operand.strides[axis] != step) return false;
    step *= operand.dims[axis];
  }
  return true;
}

Images::Images(const ep_primitive_desc& desc)
    : src(find_operand(desc, EP_ROLE_SRC)),
      weight(find_operand(desc, EP_ROLE_WEIGHT)),
      bias(find_operand(desc, EP_ROLE_BIAS)) {
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const ep_operand_desc& weights = desc.operands[weight];
  count = desc.operands[0].dims[0];
  in = desc.operands[src].dims[1];
  out = desc.operands[0].dims[1];
  weight_strides[0] = weights.strides[0];
  weight_strides[1] = weights.strides[1];
  for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
    const int32_t at = 2 - attributes.spatial_rank + i;
    src_size[at] = desc.operands[src].dims[2 + i];
    dst_size[at] = desc.operands[0].dims[2 + i];
    kernel[at] = weights.dims[2 + i];
    weight_strides[2 + at] = weights.strides[2 + i];
    stride[at] = attributes.stride[i];
    dilation[at] = attributes.dilation[i];
    pad[at] = attributes.pad_low[i];
  }
}

Images images_of(const ep_primitive_desc& desc) {
  Images images(desc);
  if (desc.attributes.convolution.transposed == 0) return images;
  if (desc.attributes.convolution.groups == 1) std::swap(images.weight_strides[0], images.weight_strides[1]);
  for (int axis = 0; axis < 2; ++axis) {
    int64_t& step = images.weight_strides[2 + axis];
    images.first_weight += (images.kernel[axis] - 1) * step;
    step = -step;
    images.pad[axis] = (images.kernel[axis] - 1) * images.dilation[axis] - images.pad[axis];
  }
  return images;
}

void Images::inside(int axis, int64_t at, int64_t* first, int64_t* last) const {
  const int64_t begin = at * stride[axis] - pad[axis];  // position of tap 0
  *first = begin >= 0 ? 0 : std::min(kernel[axis], (-begin + dilation[axis] - 1) / dilation[axis]);
  const int64_t room = src_size[axis] - begin;
  *last = room <= 0 ? *first : std::max(*first, std::min(kernel[axis], (room + dilation[axis] - 1) / dilation[axis]));
}

Refusal why_not_f32(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f32)
      return Refusal::because("operand %u is %s, not f32", i, dtype_name(operand.dtype));
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
  }
  return {};
}

Refusal why_no_finisher(const ep_device& device, const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < finish_count(desc); ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (epilogue.arity == 2 && epilogue.role == 0 && (epilogue.scalar < 0 || epilogue.scalar >= EP_MAX_SCALARS)) {
      return Refusal::because("epilogue scalar %d", epilogue.scalar);
    }
  }
  return why_no_tail(device, desc, finish_count(desc));
}

Refusal why_no_images(const ep_device& device, const ep_primitive_desc& desc, Channels channels) {
  if (is_dynamic(desc)) return Refusal::because("these convolutions need static dims");
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, EP_ROLE_WEIGHT);
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  if (src == nullptr || weight == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("an operand is missing");
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > 2 || src->rank != attributes.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", attributes.spatial_rank, src->rank);
  }
  if (Refusal refusal = why_not_f32(desc)) return refusal;
  const auto lies_so = channels == Channels::last ? is_channels_last : is_channels_first;
  if (!lies_so(*src) || !lies_so(desc.operands[0]))
    return Refusal::because("channels are not %s", channels == Channels::last ? "last" : "first");
  if (bias != nullptr && bias->dims[0] > 1 && bias->strides[0] != 1) return Refusal::because("a bias with a stride");
  return why_no_finisher(device, desc);
}

Refusal why_not_depthwise(const ep_primitive_desc& desc) {
  if (desc.attributes.convolution.transposed != 0) {
    const Images images = images_of(desc);
    for (int axis = 0; axis < 2; ++axis) {
      if (images.stride[axis] == 1 && images.pad[axis] >= 0) continue;
      return Refusal::because("a transposed convolution with stride %lld, or padding beyond its taps",
                              static_cast<long long>(images.stride[axis]));
    }
  }
  const int64_t groups = desc.attributes.convolution.groups;
  if (groups == 1 || groups != operand(desc, EP_ROLE_SRC)->dims[1] || groups != desc.operands[0].dims[1]) {
    return Refusal::because("%lld groups of several channels or results", static_cast<long long>(groups));
  }
  return {};
}

uint64_t penalty_of_planes(const ep_primitive_desc& desc) {
  uint64_t bytes = 0;
  for (const ep_operand_desc* moved : {&desc.operands[0], operand(desc, EP_ROLE_SRC)}) {
    if (is_channels_last(*moved)) continue;
    uint64_t size = static_cast<uint64_t>(dtype_size(moved->dtype));
    for (int32_t axis = 0; axis < moved->rank; ++axis) size *= static_cast<uint64_t>(moved->dims[axis]);
    bytes += size;
  }
  return bytes * 2 / 3;
}

Finisher::Finisher(const ep_device& device, const ep_primitive_desc& desc) : tail_(device, desc, finish_count(desc)) {
  for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) elements_ *= desc.operands[0].dims[axis];
  for (uint32_t i = 0; i < finish_count(desc); ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const Bound bound{true, epilogue.arity == 1 ? -1 : epilogue.scalar};
    switch (place_of(desc, epilogue)) {
      case Place::other: other_ = find_operand(desc, epilogue.role); break;
      case Place::low: low_ = bound; break;
      default: high_ = bound; break;
    }
  }
}

Finish Finisher::of(const ep_launch& launch) const {
  constexpr float kEndless = std::numeric_limits<float>::infinity();
  Finish finish;
  if (other_ >= 0) finish.other = reinterpret_cast<const float*>(address_of(launch.operands[other_]));
  finish.bounded = low_.given || high_.given;
  finish.low = low_.given ? low_.of(launch) : -kEndless;
  finish.high = high_.given ? high_.of(launch) : kEndless;
  return finish;
}

void Finisher::end(const ep_launch& launch, int32_t width) const {
  for (const Bound& bound : {low_, high_}) {
    if (!bound.given || !std::isnan(bound.of(launch))) continue;
    std::fill_n(reinterpret_cast<float*>(address_of(launch.operands[0])), elements_, bound.of(launch));
  }
  if (!tail_.empty()) tail_.run(launch, width);
}

uint64_t packed_layout(const char* form, int64_t columns, int64_t lanes) {
  uint64_t hash = UINT64_C(14695981039346656037);
  const auto take = [&](uint64_t word) { hash = (hash ^ word) * UINT64_C(1099511628211); };
  for (; *form != '\0'; ++form) take(static_cast<unsigned char>(*form));
  take(static_cast<uint64_t>(columns));
  take(static_cast<uint64_t>(lanes));
  return hash;
}

}  // namespace tenon::provider::cpu
