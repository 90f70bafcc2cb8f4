#include "providers/vulkan/kernels/element.h"

#include <fmt/core.h>

namespace tenon::provider::vulkan {
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

}  // namespace tenon::provider::vulkan
