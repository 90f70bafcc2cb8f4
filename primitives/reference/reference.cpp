#include "primitives/reference/reference.h"

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/call.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::reference {
namespace {

struct Kernel {
  int32_t kind;
  void (*run)(Call& call);
};

constexpr Kernel kernels[] = {
#define EP_PRIMITIVE(name, id, attributes, alias) {id, run_##name},
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE
};

std::string_view fault_text(int32_t code) {
  switch (code) {
    case EP_FAULT_INDEX_OUT_OF_RANGE: return "an index is out of range";
    case EP_FAULT_DIVISION_BY_ZERO: return "an integer is divided by zero";
    case EP_FAULT_BAD_MATRIX: return "a matrix is singular, not positive definite or not finite";
    default: return "an integer division overflows";
  }
}

}  // namespace

Operand Call::find(int32_t role) const {
  const int32_t index = descriptor::operand_index(desc, role);
  if (index < 0) return {};
  Operand operand = {&desc.operands[index], operands[index], nullptr};
  if ((operand.desc->flags & EP_OPERAND_FLAG_SCALAR) == 0) return operand;
  const auto slot = static_cast<size_t>(role - EP_ROLE_SRC);
  const bool baked = desc.baked_scalars >> slot & 1;
  operand.scalar = baked ? &desc.scalars[slot] : &scalars[slot];
  return operand;
}

ep_scalar Call::scalar(int32_t slot) const {
  if (desc.baked_scalars >> slot & 1) return desc.scalars[slot];
  if (static_cast<size_t>(slot) < scalars.size()) return scalars[static_cast<size_t>(slot)];
  ep_scalar zero = {};
  zero.dtype = EP_DTYPE_f64;
  return zero;
}

void Call::report(int32_t code, int32_t role, int64_t value, int64_t limit) {
  if (fault.code != 0) return;
  fault.code = code;
  fault.operand = descriptor::operand_index(desc, role);
  fault.value = value;
  fault.limit = limit;
}

Status run(const ep_primitive_desc& desc, void* const* operands, const ep_scalar* scalars, uint32_t scalar_count,
           ep_fault* fault) {
  TENON_RETURN_IF_ERROR(descriptor::check_descriptor(desc));
  if (descriptor::has_any(desc)) {
    return Status(Subject{table::kind_name(desc.kind)}, Code::invalid_argument, "the reference needs static dims.");
  }
  if (descriptor::has_opaque(desc)) {
    return Status(Subject{table::kind_name(desc.kind)}, Code::invalid_argument,
                  "the reference reads no device's layouts.");
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    const auto slot = static_cast<uint32_t>(operand.role - EP_ROLE_SRC);
    const bool missing = operand.flags & EP_OPERAND_FLAG_SCALAR
                             ? slot >= scalar_count && (desc.baked_scalars >> slot & 1) == 0
                             : operands[i] == nullptr;
    if (missing) {
      return Status(Subject{table::kind_name(desc.kind)}, Code::invalid_argument,
                    fmt::format("operand '{}' was not given.", table::role_name(operand.role)));
    }
  }
  Call call = {desc, operands, {scalars, scalar_count}};
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == desc.kind) kernel.run(call);
  }
  if (call.fault.code == 0) return {};
  if (fault != nullptr) *fault = call.fault;
  return Status(
      Subject{table::kind_name(desc.kind)}, Code::fault,
      fmt::format("{} (value {}, limit {}).", fault_text(call.fault.code), call.fault.value, call.fault.limit));
}

}  // namespace tenon::reference
