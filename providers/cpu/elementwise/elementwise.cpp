// fill, copy, unary, binary, ternary: checks the scalar function and the types, and plans a Map.
#include <string_view>

#include "providers/cpu/elementwise/elementwise.h"
#include "providers/cpu/elementwise/map.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "sdk/provider/elementwise.h"

namespace tenon::provider::cpu {
namespace {

constexpr uint64_t any_shape = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;

struct Planned {
  MapPlan plan;
  Refusal refusal;
};

// Returns an operand whose blocks have type `block_dtype`. `convert` converts between storage and block. Types of equal
// size are treated as having equal bits: no caller passes two different types of one size.
MapOperand map_operand(const ep_operand_desc& desc, int32_t block_dtype, ConvertFunction convert) {
  MapOperand operand;
  operand.dtype = desc.dtype;
  operand.block_dtype = block_dtype;
  operand.size = dtype_size(desc.dtype);
  operand.block_size = dtype_size(block_dtype);
  operand.scalar = is_scalar(desc);
  operand.direct = operand.size == operand.block_size;
  operand.convert = operand.direct ? move_elements(operand.size) : convert;
  return operand;
}

// A cast without a conversion of its own passes through a wide type. A copy between equal types moves bits.
Planned plan_copy(const ep_device& device, const ep_operand_desc& dst, const ep_operand_desc& src) {
  Planned planned;
  MapPlan& plan = planned.plan;
  plan.count = 2;
  plan.picoseconds = 300;
  const bool one_step = dst.dtype == src.dtype || narrow(src.dtype, dst.dtype, device.simd) != nullptr;
  const int32_t wide = one_step ? src.dtype : wide_dtype(src.dtype);
  plan.operands[1] = map_operand(src, wide, widen(src.dtype, device.simd));
  plan.operands[0] = map_operand(dst, wide, nullptr);
  if (dst.dtype != wide) {
    plan.operands[0].direct = false;
    plan.operands[0].convert = narrow(wide, dst.dtype, device.simd);
    const VectorCast vectors = vector_cast(device.simd, wide, dst.dtype);
    plan.stream_cast = one_step ? vectors.stream : nullptr;
    plan.picoseconds = vectors.convert != nullptr ? 300 : 1000;
  }
  return planned;
}

Planned plan_fill(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST})) return {{}, refusal};
  ep_operand_desc value = desc.operands[0];
  value.flags = EP_OPERAND_FLAG_SCALAR;
  return plan_copy(device, desc.operands[0], value);
}

// The plan for `kernel`, which computes in `compute`. The first source has its own type, because it may be a condition.
Planned plan_rows(const ep_device& device, const ep_primitive_desc& desc, const MapKernel& kernel, int32_t compute,
                  int32_t first_compute) {
  Planned planned;
  MapPlan& plan = planned.plan;
  plan.function = kernel.function;
  plan.implementation = kernel.implementation;
  plan.streams = kernel.streams;
  plan.takes_single = kernel.takes_single;
  plan.takes_scalar = kernel.takes_scalar;
  plan.takes_first_single = kernel.takes_first_single;
  plan.takes_two_scalars = kernel.takes_two_scalars;
  plan.picoseconds = kernel.picoseconds;
  plan.count = static_cast<int32_t>(desc.operand_count);
  plan.operands[0] =
      map_operand(desc.operands[0], kernel.dst_dtype, narrow(kernel.dst_dtype, desc.operands[0].dtype, device.simd));
  for (int32_t i = 1; i < plan.count; ++i) {
    const ep_operand_desc& src = desc.operands[i];
    plan.operands[i] = map_operand(src, i == 1 ? first_compute : compute, widen(src.dtype, device.simd));
    plan.picoseconds += plan.operands[i].direct ? 0 : 200;
  }
  return planned;
}

Planned plan_unary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return {{}, refusal};
  const int32_t op = desc.attributes.unary.op;
  const int32_t dtype = desc.operands[1].dtype;
  const scalar::RowFacts facts = scalar::unary_facts(op);
  const int32_t compute = compute_dtype(dtype);
  if (Refusal refusal = check_row(facts, "unary", op, unary_name(op), dtype)) return {{}, refusal};
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  if (!is_scalar(desc.operands[1]) && desc.operands[0].dtype == dtype) {
    const MapKernel narrow = narrow_unary_kernel(device.simd, op, dtype);
    if (narrow.function != nullptr) return plan_rows(device, desc, narrow, dtype, dtype);
  }
  Planned planned = plan_rows(device, desc, unary_kernel(device.simd, op, compute), compute, compute);
  planned.plan.has_parameters = !planned.plan.operands[1].scalar;
  return planned;
}

// True if a kernel that stores the type of its sources suits `desc`. Such kernels take at most one scalar.
bool suits_narrow(const ep_primitive_desc& desc) {
  uint32_t scalars = 0;
  for (uint32_t i = 1; i < desc.operand_count; ++i) scalars += is_scalar(desc.operands[i]) ? 1 : 0;
  return scalars <= 1 && desc.operands[0].dtype == desc.operands[1].dtype;
}

Planned plan_narrow(const ep_device& device, const ep_primitive_desc& desc, const MapKernel& kernel) {
  const int32_t dtype = desc.operands[0].dtype;
  Planned planned = plan_rows(device, desc, kernel, dtype, dtype);
  for (int32_t i = 1; i < planned.plan.count; ++i) {  // a scalar is not rounded to the elements' type
    if (is_scalar(desc.operands[i])) planned.plan.operands[i] = map_operand(desc.operands[i], EP_DTYPE_f32, nullptr);
  }
  return planned;
}

Planned plan_binary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B})) return {{}, refusal};
  const int32_t op = desc.attributes.binary.op;
  const int32_t dtype = desc.operands[1].dtype;
  const scalar::RowFacts facts = scalar::binary_facts(op);
  if (Refusal refusal = check_row(facts, "binary", op, binary_name(op), dtype)) return {{}, refusal};
  if (desc.operands[2].dtype != dtype) {
    return {{}, Refusal::because("inputs of %s and %s", dtype_name(dtype), dtype_name(desc.operands[2].dtype))};
  }
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  const MapKernel narrow = narrow_binary_kernel(device.simd, op, dtype);
  if (narrow.function != nullptr && suits_narrow(desc)) return plan_narrow(device, desc, narrow);
  const int32_t compute = compute_dtype(dtype);
  Planned planned = plan_rows(device, desc, binary_kernel(device.simd, op, compute), compute, compute);
  planned.plan.fault_operand = facts.checks_divisor && !is_floating(compute) ? 2 : 0;
  return planned;
}

// The unsigned type of `size` bytes, for `where`, which only moves bits.
int32_t bits_dtype(int32_t size) {
  switch (size) {
    case 1: return EP_DTYPE_u8;
    case 2: return EP_DTYPE_u16;
    case 4: return EP_DTYPE_u32;
    default: return EP_DTYPE_u64;
  }
}

Planned plan_ternary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C})) {
    return {{}, refusal};
  }
  const int32_t op = desc.attributes.ternary.op;
  const int32_t dtype = desc.operands[2].dtype;
  const scalar::RowFacts facts = scalar::ternary_facts(op);
  if (Refusal refusal = check_row(facts, "ternary", op, ternary_name(op), dtype)) return {{}, refusal};
  const bool condition = facts.domain == scalar::Domain::COND;
  const int32_t first = condition ? EP_DTYPE_bool : dtype;
  if (desc.operands[1].dtype != first || desc.operands[3].dtype != dtype) {
    return {{},
            Refusal::because("inputs of %s, %s and %s", dtype_name(desc.operands[1].dtype), dtype_name(dtype),
                             dtype_name(desc.operands[3].dtype))};
  }
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  const MapKernel narrow = narrow_ternary_kernel(device.simd, op, dtype);
  if (narrow.function != nullptr && suits_narrow(desc)) return plan_narrow(device, desc, narrow);
  const int32_t compute = condition ? bits_dtype(dtype_size(dtype)) : compute_dtype(dtype);
  return plan_rows(device, desc, ternary_kernel(device.simd, op, compute), compute,
                   condition ? EP_DTYPE_bool : compute);
}

Planned plan_kind(const ep_device& device, const ep_primitive_desc& desc) {
  switch (desc.kind) {
    case EP_PRIMITIVE_fill: return plan_fill(device, desc);
    case EP_PRIMITIVE_copy: {
      if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return {{}, refusal};
      return plan_copy(device, desc.operands[0], desc.operands[1]);
    }
    case EP_PRIMITIVE_unary: return plan_unary(device, desc);
    case EP_PRIMITIVE_binary: return plan_binary(device, desc);
    default: return plan_ternary(device, desc);
  }
}

Planned plan_any(const ep_device& device, const ep_primitive_desc& desc) {
  Planned planned = plan_kind(device, desc);
  for (int32_t i = 0; i < planned.plan.count; ++i) {
    const MapOperand& operand = planned.plan.operands[i];
    planned.plan.fills[i] = operand.direct ? vector_fill(device.simd, operand.size) : nullptr;
  }
  return planned;
}

// Refuses if the plan's implementation is not `name`: some kernels are element-by-element loops, called `plain`.
Refusal check_name(const Planned& planned, const char* name) {
  if (planned.refusal || planned.plan.implementation == std::string_view(name)) return planned.refusal;
  return Refusal::because("this row on this type is a loop over single elements");
}

}  // namespace

Refusal Elementwise::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  info.flags = any_shape;
  return check_name(plan_any(device, desc), "simd");
}

Refusal Elementwise::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  info.flags = any_shape;
  return plan_any(device, desc).refusal;
}

Refusal Elementwise::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const Planned planned = plan_any(device, desc);
  if (!planned.refusal) *out = make_primitive<MapPrimitive>(device, device, planned.plan, desc);
  return planned.refusal;
}

}  // namespace tenon::provider::cpu
