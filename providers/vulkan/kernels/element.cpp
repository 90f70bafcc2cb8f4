#include "providers/vulkan/kernels/element.h"

#include <fmt/core.h>

#include <bit>

#include "sdk/provider/float_formats.h"

namespace tenon::provider::vulkan {
namespace {

// The bits of `value` in narrow float `dtype`.
uint32_t narrow_bits(float value, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return F16::from_f32(value);
    case EP_DTYPE_bf16: return bf16_from_f32(value);
    case EP_DTYPE_f8e4m3fn: return F8E4M3FN::from_f32(value);
    case EP_DTYPE_f8e5m2: return F8E5M2::from_f32(value);
    default: return std::bit_cast<uint32_t>(value);
  }
}

float wide_value(uint32_t bits, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return F16::to_f32(bits);
    case EP_DTYPE_bf16: return bf16_to_f32(static_cast<uint16_t>(bits));
    case EP_DTYPE_f8e4m3fn: return F8E4M3FN::to_f32(bits);
    case EP_DTYPE_f8e5m2: return F8E5M2::to_f32(bits);
    default: return std::bit_cast<float>(bits);
  }
}

}  // namespace

const char* class_of_dtype(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16:
    case EP_DTYPE_f32:
    case EP_DTYPE_f8e4m3fn:
    case EP_DTYPE_f8e5m2: return "f32";
    case EP_DTYPE_i8:
    case EP_DTYPE_i16:
    case EP_DTYPE_i32: return "i32";
    case EP_DTYPE_bool:
    case EP_DTYPE_u8:
    case EP_DTYPE_u16:
    case EP_DTYPE_u32: return "u32";
    case EP_DTYPE_i64: return "i64";
    case EP_DTYPE_u64: return "u64";
    default: return nullptr;
  }
}

uint32_t width_of(int32_t dtype) { return dtype == EP_DTYPE_bool ? 1 : static_cast<uint32_t>(dtype_size(dtype)) * 8; }

Refusal why_not_stored(const Features& features, int32_t dtype) {
  const int32_t size = dtype_size(dtype);
  if (size == 0) return Refusal::because("kernels do not take packed elements (%s)", dtype_name(dtype));
  if (size < 4 && !features.narrow) {
    return Refusal::because("%s needs storageBuffer8BitAccess and storageBuffer16BitAccess", dtype_name(dtype));
  }
  return {};
}

Refusal why_not_computed(const Features& features, int32_t dtype) {
  if (class_of_dtype(dtype) == nullptr) return Refusal::because("no kernel computes in %s", dtype_name(dtype));
  if (dtype_size(dtype) == 8 && !(features.int64 && features.narrow)) {
    return Refusal::because("%s needs shaderInt64", dtype_name(dtype));
  }
  return why_not_stored(features, dtype);
}

std::string module_name(const std::string& shader, const std::string& variant, const Features& features) {
  return fmt::format("{}_{}{}", shader, variant, features.narrow ? "_narrow" : "_words");
}

uint64_t scalar_bits(const ep_scalar& scalar, int32_t dtype) {
  if (!is_floating(dtype)) {
    const uint32_t width = width_of(dtype);
    const uint64_t bits = dtype == EP_DTYPE_bool ? (scalar.value.u64 != 0 ? 1 : 0) : scalar.value.u64;
    if (width >= 32) return bits;
    const uint64_t kept = bits & ((UINT64_C(1) << width) - 1);
    const bool negative = dtype_class(dtype) == DTypeClass::INT && (kept >> (width - 1)) != 0;
    return negative ? kept | ~((UINT64_C(1) << width) - 1) : kept;
  }
  return std::bit_cast<uint32_t>(wide_value(static_cast<uint32_t>(element_bits(scalar, dtype)), dtype));
}

uint64_t element_bits(const ep_scalar& scalar, int32_t dtype) {
  if (dtype == EP_DTYPE_bool) return scalar.value.u64 != 0 ? 1 : 0;
  if (!is_floating(dtype)) return scalar.value.u64;
  if (dtype == EP_DTYPE_f64) return std::bit_cast<uint64_t>(scalar.value.f64);
  return narrow_bits(static_cast<float>(scalar.value.f64), dtype);
}

}  // namespace tenon::provider::vulkan
