// Max pooling of bytes, channels last: compares whole pixels, which the compiler vectorises.
#include <algorithm>
#include <cstring>

#include "providers/cpu/quantised/quantised.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

template <class T>
void keep_greater(T* out, const T* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::max(out[i], in[i]);
}

template <class T>
class BytePoolingPrimitive final : public ep_primitive {
 public:
  explicit BytePoolingPrimitive(const ep_primitive_desc& desc) : desc_(desc), src_(find_operand(desc, EP_ROLE_SRC)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const ep_operand_desc& dst = desc_.operands[0];
    const ep_pooling_attributes& at = desc_.attributes.pooling;
    const int64_t lines = dst.dims[0] * dst.dims[2];
    const int64_t work = lines * dst.dims[3] * dst.dims[1] * at.kernel[0] * at.kernel[1] / 16;
    parallel(device->threads, work, [&](int32_t part, int32_t parts) {
      for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) run_line(launch, line);
    });
    return EP_STATUS_OK;
  }

 private:
  void run_line(const ep_launch& launch, int64_t line) const {
    const ep_operand_desc &dst = desc_.operands[0], &src = desc_.operands[src_];
    const ep_pooling_attributes& at = desc_.attributes.pooling;
    const int64_t image = line / dst.dims[2], y = line % dst.dims[2], channels = dst.dims[1];
    T* to = reinterpret_cast<T*>(address_of(launch.operands[0])) + image * dst.strides[0] + y * dst.strides[2];
    const T* from = reinterpret_cast<const T*>(address_of(launch.operands[src_])) + image * src.strides[0];
    for (int64_t x = 0; x < dst.dims[3]; ++x, to += dst.strides[3]) {
      bool first = true;
      for (int64_t down = 0; down < at.kernel[0]; ++down) {
        const int64_t at_y = y * at.stride[0] - at.pad_low[0] + down * at.dilation[0];
        if (at_y < 0 || at_y >= src.dims[2]) continue;
        for (int64_t right = 0; right < at.kernel[1]; ++right) {
          const int64_t at_x = x * at.stride[1] - at.pad_low[1] + right * at.dilation[1];
          if (at_x < 0 || at_x >= src.dims[3]) continue;
          const T* pixel = from + at_y * src.strides[2] + at_x * src.strides[3];
          first ? std::copy_n(pixel, channels, to), void() : keep_greater(to, pixel, channels);
          first = false;
        }
      }
    }
  }

  const ep_primitive_desc desc_;
  const int32_t src_;
};

}  // namespace

Refusal BytePooling::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("pooling of bytes needs static dims");
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& dst = desc.operands[0];
  const ep_pooling_attributes& at = desc.attributes.pooling;
  if (src == nullptr || desc.operand_count != 2) return Refusal::because("%u operands", desc.operand_count);
  if (at.op != EP_POOLING_MAX || at.spatial_rank != 2) return Refusal::because("no maximum over two spatial dims");
  if ((dst.dtype != EP_DTYPE_i8 && dst.dtype != EP_DTYPE_u8) || src->dtype != dst.dtype)
    return Refusal::because("%s", dtype_name(dst.dtype));
  for (const ep_operand_desc* each : {&dst, src}) {
    if (each->dims[1] != 1 && each->strides[1] != 1) return Refusal::because("channels are not contiguous");
  }
  for (int32_t i = 0; i < 2; ++i) {  // every window contains an element
    const int64_t last = (dst.dims[2 + i] - 1) * at.stride[i] - at.pad_low[i];
    if (last >= src->dims[2 + i] || at.pad_low[i] >= at.kernel[i] || at.dilation[i] != 1) {
      return Refusal::because("windows of stride %lld and dilation %lld", static_cast<long long>(at.stride[i]),
                              static_cast<long long>(at.dilation[i]));
    }
  }
  return {};
}

Refusal BytePooling::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (desc.operands[0].dtype == EP_DTYPE_i8)
    *out = make_primitive<BytePoolingPrimitive<int8_t>>(device, desc);
  else
    *out = make_primitive<BytePoolingPrimitive<uint8_t>>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
