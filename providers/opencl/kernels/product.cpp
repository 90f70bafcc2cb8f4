#include "providers/opencl/kernels/product.h"

#include <fmt/core.h>

#include <algorithm>

#include "sdk/provider/elementwise.h"

namespace tenon::provider::opencl {

ProductOperands::ProductOperands(const ep_primitive_desc& desc, int32_t a, int32_t b) {
  found_.fill(-1);
  found_[SLOT_DST] = find_operand(desc, EP_ROLE_DST);
  found_[SLOT_A] = find_operand(desc, a);
  found_[SLOT_B] = find_operand(desc, b);
  found_[SLOT_BIAS] = find_operand(desc, EP_ROLE_BIAS);
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.epilogue_count, EP_MAX_EPILOGUES); ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (epilogue.arity == 2 && epilogue.role != 0) found_[SLOT_EPILOGUE + i] = find_operand(desc, epilogue.role);
  }
}

Refusal ProductOperands::check(const ep_device& device, const ep_primitive_desc& desc) const {
  if (at(SLOT_DST) != 0 || at(SLOT_A) < 0 || at(SLOT_B) < 0) return Refusal::because("an operand is missing");
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  if (desc.epilogue_count > EP_MAX_EPILOGUES) return Refusal::because("%u epilogues", desc.epilogue_count);
  const int32_t dtype = desc.operands[0].dtype;
  if (Refusal refusal = why_not_computed(device.context->physical, dtype)) return refusal;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (std::find(found_.begin(), found_.end(), static_cast<int32_t>(i)) == found_.end() || is_scalar(operand)) {
      return Refusal::because("operand %u has role %d", i, operand.role);
    }
    if (operand.dtype == EP_DTYPE_bool || dtype_size(operand.dtype) == 0 ||
        dtype_class(operand.dtype) != dtype_class(dtype) ||
        (operand.dtype == EP_DTYPE_f64) != (dtype == EP_DTYPE_f64)) {
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(operand.dtype), dtype_name(dtype));
    }
  }
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    if (Refusal refusal = check_epilogue(desc, desc.epilogues[i])) return refusal;
  }
  return {};
}

std::string ProductOperands::options(const ep_device& device, const ep_primitive_desc& desc) const {
  const auto dtype_at = [&](int32_t slot) { return at(slot) < 0 ? 0 : desc.operands[at(slot)].dtype; };
  std::string options = type_options(device.context->physical, desc.operands[0].dtype) +
                        fmt::format(" -DA_DTYPE={} -DB_DTYPE={} -DBIAS_DTYPE={}", dtype_at(SLOT_A), dtype_at(SLOT_B),
                                    dtype_at(SLOT_BIAS));
  for (int32_t i = 0; i < EP_MAX_EPILOGUES; ++i) {
    const bool present = static_cast<uint32_t>(i) < desc.epilogue_count;
    options += fmt::format(" -DARITY_{}={} -DOP_{}={} -DDTYPE_{}={}", i, present ? desc.epilogues[i].arity : 0, i,
                           present ? desc.epilogues[i].op : 0, i, dtype_at(SLOT_EPILOGUE + i));
  }
  return options;
}

void ProductOperands::read(const ep_primitive_desc& desc, const ep_launch& launch,
                           std::array<cl_mem, product_slots>* buffers, uint64_t (&offsets)[product_slots],
                           uint64_t (&scalars)[2 * EP_MAX_EPILOGUES]) const {
  for (int32_t slot = 0; slot < product_slots; ++slot) {
    const int32_t i = at(slot);
    (*buffers)[static_cast<size_t>(slot)] = i < 0 ? nullptr : buffer_of(launch.operands[i]);
    offsets[slot] = i < 0 ? 0 : first_element(launch.operands[i], desc.operands[i].dtype);
  }
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t scalar = static_cast<uint32_t>(desc.epilogues[i].scalar) + k;
      if (scalar >= launch.scalar_count) continue;
      scalars[2 * i + k] = scalar_bits(launch.scalars[scalar], launch.scalars[scalar].dtype);
    }
  }
}

}  // namespace tenon::provider::opencl
