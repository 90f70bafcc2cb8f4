#include "providers/cuda/elementwise/elementwise.h"

#include <fmt/core.h>

#include "providers/cuda/elementwise/scalar_value.h"
#include "sdk/provider/elementwise.h"

namespace tenon::provider::cuda {
namespace {

constexpr uint64_t any_shape = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;

template <class... Parts>
void name_kernel(MapPlan* plan, Family family, fmt::format_string<const Parts&...> name, const Parts&... parts) {
  plan->family = family;
  *fmt::format_to_n(plan->kernel, sizeof plan->kernel - 1, name, parts...).out = '\0';
}

Refusal check_class(const ep_operand_desc& operand) {
  if (class_of(operand.dtype) != 0) return {};
  return Refusal::because("no kernel computes with %s", dtype_name(operand.dtype));
}

MapPlan plan_of(const ep_primitive_desc& desc) {
  MapPlan plan;
  plan.count = static_cast<int32_t>(desc.operand_count);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    plan.dtypes[i] = desc.operands[i].dtype;
    plan.scalar[i] = is_scalar(desc.operands[i]);
  }
  return plan;
}

// Plans a cast, or a bit copy between equal types.
Planned plan_move(const ep_primitive_desc& desc, const ep_operand_desc& src) {
  const ep_operand_desc& dst = desc.operands[0];
  Planned planned;
  MapPlan& plan = planned.plan;
  plan = plan_of(desc);
  plan.count = 2;
  plan.dtypes[1] = src.dtype;
  plan.scalar[1] = is_scalar(src);
  if (plan.scalar[1] || src.dtype != dst.dtype) {
    if (planned.refusal = check_class(src); planned.refusal) return planned;
    if (planned.refusal = check_class(dst); planned.refusal) return planned;
  }
  plan.moves_bits = src.dtype == dst.dtype;
  if (plan.moves_bits)
    name_kernel(&plan, Family::MOVE, "bits_{}", dtype_size(dst.dtype));
  else
    name_kernel(&plan, Family::MOVE, "cast_{}", class_name(class_of(src.dtype)));
  return planned;
}

Planned plan_fill(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST})) return {{}, refusal};
  ep_operand_desc value = desc.operands[0];
  value.flags = EP_OPERAND_FLAG_SCALAR;
  return plan_move(desc, value);
}

Planned plan_copy(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return {{}, refusal};
  return plan_move(desc, desc.operands[1]);
}

// Chooses the f32 kernel of a scalar function, or the kernel of a class, which contains all scalar functions.
void choose_row_kernel(MapPlan* plan, Family family, int32_t dtype_class, int32_t op, const char* row) {
  if (dtype_class == EP_DTYPE_f32) return name_kernel(plan, family, "{}_{}_f32", family_name(family), row);
  name_kernel(plan, family, "{}_{}", family_name(family), class_name(dtype_class));
  plan->op = op;
  plan->chunk = 1;
}

Planned plan_unary(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return {{}, refusal};
  const int32_t op = desc.attributes.unary.op;
  const int32_t dtype = desc.operands[1].dtype;
  const scalar::RowFacts facts = scalar::unary_facts(op);
  if (Refusal refusal = check_class(desc.operands[1])) return {{}, refusal};
  if (Refusal refusal = check_row(facts, "unary", op, unary_name(op), dtype)) return {{}, refusal};
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  Planned planned{plan_of(desc), {}};
  choose_row_kernel(&planned.plan, Family::UNARY, class_of(dtype), op, unary_name(op));
  if (!planned.plan.scalar[1]) planned.plan.parameter_class = class_of(dtype);
  return planned;
}

Planned plan_binary(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B})) return {{}, refusal};
  const int32_t op = desc.attributes.binary.op;
  const int32_t dtype = desc.operands[1].dtype;
  const scalar::RowFacts facts = scalar::binary_facts(op);
  if (Refusal refusal = check_class(desc.operands[1])) return {{}, refusal};
  if (Refusal refusal = check_row(facts, "binary", op, binary_name(op), dtype)) return {{}, refusal};
  if (desc.operands[2].dtype != dtype) {
    return {{}, Refusal::because("inputs of %s and %s", dtype_name(dtype), dtype_name(desc.operands[2].dtype))};
  }
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  Planned planned{plan_of(desc), {}};
  choose_row_kernel(&planned.plan, Family::BINARY, class_of(dtype), op, binary_name(op));
  if (facts.checks_divisor && !is_floating(dtype)) planned.plan.fault_operand = 2;
  return planned;
}

Planned plan_ternary(const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C})) {
    return {{}, refusal};
  }
  const int32_t op = desc.attributes.ternary.op;
  const int32_t dtype = desc.operands[2].dtype;
  const scalar::RowFacts facts = scalar::ternary_facts(op);
  const bool condition = facts.domain == scalar::Domain::COND;
  if (Refusal refusal = check_row(facts, "ternary", op, ternary_name(op), dtype)) return {{}, refusal};
  for (uint32_t i = 1; i < 4; ++i) {
    if (condition && i > 1 && !is_scalar(desc.operands[i])) continue;  // `where` moves bits of any type
    if (Refusal refusal = check_class(desc.operands[i])) return {{}, refusal};
  }
  if (desc.operands[1].dtype != (condition ? EP_DTYPE_bool : dtype) || desc.operands[3].dtype != dtype) {
    return {{},
            Refusal::because("inputs of %s, %s and %s", dtype_name(desc.operands[1].dtype), dtype_name(dtype),
                             dtype_name(desc.operands[3].dtype))};
  }
  if (Refusal refusal = check_result(desc, facts, dtype)) return {{}, refusal};
  Planned planned{plan_of(desc), {}};
  if (condition) {
    planned.plan.moves_bits = true;
    name_kernel(&planned.plan, Family::MOVE, "where_{}", dtype_size(dtype));
  } else {
    planned.plan.chunk = 1;
    name_kernel(&planned.plan, Family::MOVE, "{}_{}", ternary_name(op), class_name(class_of(dtype)));
  }
  return planned;
}

class MapPrimitive final : public ep_primitive {
 public:
  MapPrimitive(const Map& map, const ep_primitive_desc& desc) : map_(map), dynamic_(is_dynamic(desc)) {
    if (!dynamic_) shape_ = fold(desc.operands, nullptr);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    MapOperands operands;
    for (uint32_t i = 0; i < launch.operand_count; ++i) operands.addresses[i] = address_of(launch.operands[i]);
    map_.read_scalars(launch.scalars, launch.scalar_count, 0, &operands);
    const MapShape given = dynamic_ ? fold(nullptr, launch.shapes) : MapShape();
    return map_.run(stream, dynamic_ ? given : shape_, operands, launch.tag, error);
  }

 private:
  MapShape fold(const ep_operand_desc* operands, const ep_shape* shapes) const {
    OperandShape given[map_max_operands];
    for (int32_t i = 0; i < map_.plan().count; ++i) {
      if (map_.plan().scalar[i]) continue;
      given[i] = shapes != nullptr ? OperandShape{shapes[i].dims, shapes[i].strides, shapes[i].rank}
                                   : OperandShape{operands[i].dims, operands[i].strides, operands[i].rank};
    }
    return folded(map_.plan(), given);
  }

  Map map_;
  bool dynamic_;
  MapShape shape_;  // set if the descriptor is static
};

}  // namespace

Planned plan_elementwise(const ep_primitive_desc& desc) {
  switch (desc.kind) {
    case EP_PRIMITIVE_fill: return plan_fill(desc);
    case EP_PRIMITIVE_copy: return plan_copy(desc);
    case EP_PRIMITIVE_unary: return plan_unary(desc);
    case EP_PRIMITIVE_binary: return plan_binary(desc);
    default: return plan_ternary(desc);
  }
}

Refusal make_map(ep_device& device, const MapPlan& plan, Map* out) {
  CUfunction function = nullptr;
  if (Refusal refusal = find_kernel(device, plan.family, plan.kernel, &function)) return refusal;
  *out = Map(plan, function);
  return {};
}

Refusal Elementwise::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  info.flags = any_shape;
  return plan_elementwise(desc).refusal;
}

Refusal Elementwise::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const Planned planned = plan_elementwise(desc);
  if (planned.refusal) return planned.refusal;
  Map map;
  if (Refusal refusal = make_map(device, planned.plan, &map)) return refusal;
  *out = make_primitive<MapPrimitive>(device, map, desc);
  return {};
}

}  // namespace tenon::provider::cuda
