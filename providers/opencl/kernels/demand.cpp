#include "providers/opencl/kernels/demand.h"

#include <algorithm>
#include <string_view>

namespace tenon::provider::opencl {
namespace {

// f64 functions that prelude.cl takes from the device. OpenCL allows them to be less exact than tier full.
constexpr std::string_view of_the_device[] = {"ep_tan(", "ep_atan(", "ep_tanh(", "ep_atanh(", "ep_erf(", "ep_erfc("};

bool calls_device(int32_t unary) {
  std::string_view expression;
  switch (unary) {
#define EP_UNARY(name, id, domain, result, text) \
  case id:                                       \
    expression = #text;                          \
    break;
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: break;
  }
  return std::any_of(std::begin(of_the_device), std::end(of_the_device),
                     [&](std::string_view name) { return expression.find(name) != std::string_view::npos; });
}

bool is_flushed(int32_t dtype) { return dtype == EP_DTYPE_f32 || dtype == EP_DTYPE_bf16; }

}  // namespace

bool keeps_demand(const PhysicalDevice& device, const ep_primitive_desc& desc) {
  if (desc.precision < EP_PRECISION_PORTABLE) return false;
  if (desc.precision == EP_PRECISION_PORTABLE) return true;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!device.keeps_denormals && is_flushed(desc.operands[i].dtype)) return false;
  }
  if (desc.operands[0].dtype != EP_DTYPE_f64) return true;
  if (desc.kind == EP_PRIMITIVE_unary && calls_device(desc.attributes.unary.op)) return false;
  return std::none_of(desc.epilogues, desc.epilogues + desc.epilogue_count,
                      [](const ep_epilogue& epilogue) { return epilogue.arity == 1 && calls_device(epilogue.op); });
}

}  // namespace tenon::provider::opencl
