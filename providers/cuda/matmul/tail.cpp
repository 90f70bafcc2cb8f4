#include "providers/cuda/elementwise/elementwise.h"
#include "providers/cuda/matmul/matmul.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {
namespace {

// The element-wise descriptor of one epilogue on the result. `other` receives the epilogue's second operand, if any.
ep_primitive_desc epilogue_desc(const ep_primitive_desc& desc, const ep_epilogue& epilogue) {
  ep_primitive_desc step{};
  step.kind = epilogue.arity == 1 ? EP_PRIMITIVE_unary : EP_PRIMITIVE_binary;
  step.operand_count = epilogue.arity == 1 ? 2 : 3;
  step.operands[0] = step.operands[1] = step.operands[2] = desc.operands[0];
  step.operands[1].role = EP_ROLE_SRC;
  if (epilogue.arity == 1) {
    step.attributes.unary.op = epilogue.op;
    step.operands[2] = {};
    return step;
  }
  step.attributes.binary.op = epilogue.op;
  if (epilogue.role != 0) {
    step.operands[2] = *operand(desc, epilogue.role);
  } else {
    step.operands[2].flags = EP_OPERAND_FLAG_SCALAR;
    step.operands[2].rank = 0;
  }
  step.operands[2].role = EP_ROLE_SRC_B;
  return step;
}

}  // namespace

Refusal why_no_epilogues(const ep_primitive_desc& desc, uint32_t first) {
  if (first < desc.epilogue_count && desc.operands[0].dtype != EP_DTYPE_f32 && desc.operands[0].dtype != EP_DTYPE_f64) {
    return Refusal::because("epilogues after a result in %s would round twice", dtype_name(desc.operands[0].dtype));
  }
  if (desc.epilogue_count > EP_MAX_EPILOGUES) return Refusal::because("%u epilogues", desc.epilogue_count);
  for (uint32_t i = first; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (epilogue.arity != 1 && epilogue.arity != 2) return Refusal::because("an epilogue of arity %d", epilogue.arity);
    if (epilogue.arity == 2 && epilogue.role != 0 && operand(desc, epilogue.role) == nullptr) {
      return Refusal::because("epilogue %u has no operand of role %d", i, epilogue.role);
    }
    if (Refusal refusal = plan_elementwise(epilogue_desc(desc, epilogue)).refusal) return refusal;
  }
  return {};
}

Refusal add_epilogues(ep_device& device, const ep_primitive_desc& desc, uint32_t first, Tail* tail,
                      const ep_primitive_desc* stored) {
  for (uint32_t i = first; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const int32_t operand = epilogue.arity == 2 && epilogue.role != 0 ? find_operand(desc, epilogue.role) : -1;
    const int32_t dtype = stored != nullptr && operand >= 0 ? stored->operands[operand].dtype : 0;
    if (Refusal refusal = tail->add(device, epilogue_desc(desc, epilogue), epilogue.scalar, operand, dtype)) {
      return refusal;
    }
  }
  return {};
}

Refusal add_bias(ep_device& device, const ep_primitive_desc& desc, int32_t bias, Tail* tail,
                 const ep_primitive_desc* stored) {
  ep_primitive_desc sum{};
  sum.kind = EP_PRIMITIVE_binary;
  sum.attributes.binary.op = EP_BINARY_add;
  sum.operand_count = 3;
  sum.operands[0] = sum.operands[1] = desc.operands[0];
  sum.operands[1].role = EP_ROLE_SRC;
  sum.operands[2] = desc.operands[bias];
  sum.operands[2].role = EP_ROLE_SRC_B;
  return tail->add(device, sum, 0, bias, stored != nullptr ? stored->operands[bias].dtype : 0);
}

Refusal Tail::add(ep_device& device, const ep_primitive_desc& desc, int32_t slot, int32_t operand, int32_t stored) {
  Planned planned = plan_elementwise(desc);
  if (planned.refusal) return planned.refusal;
  if (stored != 0) planned.plan.dtypes[2] = stored;
  Map map;
  if (Refusal refusal = make_map(device, planned.plan, &map)) return refusal;
  steps_.push_back({map, slot, operand});
  return {};
}

ep_status Tail::run(ep_stream* stream, const ep_launch& launch, const ep_operand_desc* operands,
                    ep_error** error) const {
  const OperandShape dst = shape_of(operands[0], launch.shapes, 0);
  for (const Step& step : steps_) {
    OperandShape shapes[map_max_operands] = {dst, dst, {}, {}};
    MapOperands from;
    from.addresses[0] = from.addresses[1] = address_of(launch.operands[0]);
    if (step.operand >= 0) {
      const auto index = static_cast<uint32_t>(step.operand);
      shapes[2] = shape_of(operands[index], launch.shapes, index);
      from.addresses[2] = address_of(launch.operands[index]);
    }
    // An element-wise launch has a scalar operand in slot 1, and parameters in slots 0 and 1.
    const auto slot = static_cast<uint32_t>(step.slot);
    ep_scalar scalars[2] = {};
    const bool binary = step.map.plan().count == 3;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t at = slot + (binary ? 0 : i);
      if (at < launch.scalar_count) scalars[i] = launch.scalars[at];
    }
    step.map.read_scalars(scalars, 2, 0, &from);
    const MapShape shape = folded(step.map.plan(), shapes);
    const ep_status status = step.map.run(stream, shape, from, launch.tag, error);
    if (status != EP_STATUS_OK) return status;
  }
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::cuda
