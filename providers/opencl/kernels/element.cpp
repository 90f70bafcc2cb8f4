#include "providers/opencl/kernels/element.h"

#include <fmt/core.h>

namespace tenon::provider::opencl {

std::string type_options(const PhysicalDevice& device, int32_t dtype) {
  const std::string common = fmt::format("-DSRC_DTYPE={} -DEP_WIDTH={}", dtype, width_of(dtype));
  switch (dtype_class(dtype)) {
    case DTypeClass::FLOAT:
      if (dtype == EP_DTYPE_f64) return common + " -DEP_T=double -DEP_FLOAT64";
      return common + " -DEP_T=float -DEP_FLOAT32" + (device.exact_division ? "" : " -DEP_ROUND_IN_FLOAT64");
    case DTypeClass::INT:
      return common +
             (dtype_size(dtype) == 8 ? " -DEP_T=long -DEP_U=ulong -DEP_SIGNED" : " -DEP_T=int -DEP_U=uint -DEP_SIGNED");
    default: return common + (dtype_size(dtype) == 8 ? " -DEP_T=ulong -DEP_UNSIGNED" : " -DEP_T=uint -DEP_UNSIGNED");
  }
}

Refusal why_not_stored(int32_t dtype) {
  if (dtype_size(dtype) != 0) return {};
  return Refusal::because("kernels do not take packed elements (%s)", dtype_name(dtype));
}

Refusal why_not_computed(const PhysicalDevice& device, int32_t dtype) {
  if (dtype == EP_DTYPE_f8e4m3fnuz || dtype == EP_DTYPE_f8e5m2fnuz || dtype == EP_DTYPE_f8e8m0)
    return Refusal::because("kernels do not read %s", dtype_name(dtype));
  if (dtype == EP_DTYPE_f64 && !device.f64) return Refusal::because("f64 needs cl_khr_fp64");
  return why_not_stored(dtype);
}

}  // namespace tenon::provider::opencl
