// fill, copy, unary, binary, ternary: one work-item per element. If every operand is contiguous, kernels named _flat
// run; otherwise kernels named _strided, with the dims and strides of the launch.
#include "sdk/provider/elementwise.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "providers/opencl/kernels/kernels.h"
#include "providers/opencl/kernels/map.h"

namespace tenon::provider::opencl {
namespace {

// The plan of a descriptor: its program and kernel, and the form of its scalars.
struct Plan {
  std::string text;
  std::string options;
  std::string kernel;
  int32_t op = 0;
  bool element_scalars = false;  // scalars are passed in their dtype, not in the kernel's compute type
  bool checks_divisor = false;
  std::array<int32_t, most_map_inputs> scalar_dtypes{};
  Refusal refusal;
};

Plan refused(const Refusal& refusal) {
  Plan plan;
  plan.refusal = refusal;
  return plan;
}

// True if `operand` is contiguous in every launch.
bool is_contiguous(const ep_operand_desc& operand) {
  int64_t expected = 1;
  for (int32_t axis = operand.rank - 1; axis >= 0; --axis) {
    if (operand.dims[axis] == EP_ANY) return axis == 0 && operand.strides[axis] == expected;
    if (operand.dims[axis] != 1 && operand.strides[axis] != expected) return false;
    expected *= operand.dims[axis];
  }
  return true;
}

bool is_flat(const ep_primitive_desc& desc) {
  return std::all_of(desc.operands, desc.operands + desc.operand_count,
                     [](const ep_operand_desc& operand) { return is_scalar(operand) || is_contiguous(operand); });
}

// fill, where, and copy between equal types move elements as bits.
Plan plan_move(const ep_primitive_desc& desc, const char* kernel) {
  Plan plan;
  const int32_t dtype = desc.operands[0].dtype;
  plan.scalar_dtypes.fill(dtype);
  const bool where = desc.kind == EP_PRIMITIVE_ternary;
  if (where) plan.scalar_dtypes[0] = EP_DTYPE_bool;
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const int32_t expected = plan.scalar_dtypes[i - 1];
    if (desc.operands[i].dtype == expected) continue;
    return refused(
        Refusal::because("an input of %s, not %s", dtype_name(desc.operands[i].dtype), dtype_name(expected)));
  }
  plan.element_scalars = true;
  plan.text = "move";
  plan.kernel = kernel;
  plan.options = bits_option(dtype);
  return plan;
}

Plan plan_copy(const ep_device& device, const ep_primitive_desc& desc) {
  if (is_scalar(desc.operands[1])) return refused(Refusal::because("a scalar argument"));
  if (desc.operands[0].dtype == desc.operands[1].dtype) return plan_move(desc, "copy");
  for (uint32_t i = 0; i < 2; ++i) {
    if (Refusal refusal = why_not_computed(device.context->physical, desc.operands[i].dtype)) return refused(refusal);
  }
  Plan plan;
  plan.text = "cast";
  plan.kernel = "cast";
  return plan;
}

// A scalar function. On contiguous f32 each has its own program. Other types and strided operands share one program for
// all functions: separate programs would take long to compile and speed up few models.
Plan plan_row(const ep_device& device, const ep_primitive_desc& desc, const scalar::RowFacts& facts, const char* arity,
              int32_t op, const char* name) {
  const int32_t inputs = static_cast<int32_t>(desc.operand_count) - 1;
  const int32_t dtype = desc.operands[inputs].dtype;
  if (Refusal refusal = check_row(facts, arity, op, name, dtype)) return refused(refusal);
  if (Refusal refusal = check_result(desc, facts, dtype)) return refused(refusal);
  if (Refusal refusal = why_not_computed(device.context->physical, dtype)) return refused(refusal);
  for (int32_t i = 1; i < inputs; ++i) {
    if (desc.operands[i].dtype == dtype) continue;
    return refused(Refusal::because("inputs of %s and %s", dtype_name(desc.operands[i].dtype), dtype_name(dtype)));
  }
  Plan plan;
  plan.text = "map";
  plan.kernel = fmt::format("map{}", inputs);
  plan.options = type_options(device.context->physical, dtype);
  if (!is_flat(desc)) {
    plan.options += " -DSTRIDED";
  } else if (dtype == EP_DTYPE_f32) {
    plan.options += fmt::format(" -DOP={}", op);
  }
  plan.op = op;
  plan.checks_divisor = facts.checks_divisor && !is_floating(dtype);
  plan.scalar_dtypes.fill(dtype);
  return plan;
}

Plan plan_ternary(const ep_device& device, const ep_primitive_desc& desc) {
  const int32_t op = desc.attributes.ternary.op;
  if (op != EP_TERNARY_where) {
    return plan_row(device, desc, scalar::ternary_facts(op), "ternary", op, ternary_name(op));
  }
  return plan_move(desc, "where");
}

Plan plan_of(const ep_device& device, const ep_primitive_desc& desc) {
  const auto takes = [&desc](std::initializer_list<int32_t> roles) { return check_operands(desc, roles); };
  if (desc.operands[0].rank < 1) return refused(Refusal::because("the destination has rank %d", desc.operands[0].rank));
  switch (desc.kind) {
    case EP_PRIMITIVE_fill: {
      if (Refusal refusal = takes({EP_ROLE_DST})) return refused(refusal);
      return plan_move(desc, "fill");
    }
    case EP_PRIMITIVE_copy: {
      if (Refusal refusal = takes({EP_ROLE_DST, EP_ROLE_SRC})) return refused(refusal);
      return plan_copy(device, desc);
    }
    case EP_PRIMITIVE_unary: {
      if (Refusal refusal = takes({EP_ROLE_DST, EP_ROLE_SRC})) return refused(refusal);
      if (is_scalar(desc.operands[1])) return refused(Refusal::because("a scalar argument"));
      const int32_t op = desc.attributes.unary.op;
      return plan_row(device, desc, scalar::unary_facts(op), "unary", op, unary_name(op));
    }
    case EP_PRIMITIVE_binary: {
      if (Refusal refusal = takes({EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B})) return refused(refusal);
      const int32_t op = desc.attributes.binary.op;
      return plan_row(device, desc, scalar::binary_facts(op), "binary", op, binary_name(op));
    }
    default: {
      if (Refusal refusal = takes({EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C})) return refused(refusal);
      return plan_ternary(device, desc);
    }
  }
}

class ElementwisePrimitive final : public ep_primitive {
 public:
  ElementwisePrimitive(const Plan& plan, const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)),
        kind_(desc.kind),
        op_(plan.op),
        operands_(desc.operand_count),
        scalar_mask_(scalar_mask(desc)),
        element_scalars_(plan.element_scalars),
        checks_divisor_(plan.checks_divisor),
        scalar_dtypes_(plan.scalar_dtypes) {
    std::copy_n(desc.operands, desc.operand_count, descs_.begin());
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    MapParameters p = parameters(launch);
    cl_mem buffers[most_map_operands] = {};
    for (uint32_t i = 0; i < operands_; ++i) buffers[i] = buffer_of(launch.operands[i]);
    cl_mem faults = nullptr;
    if (checks_divisor_) {
      const ep_status status = stream.queue->faults().watch(launch.tag, 2, 0, &faults, &p.fault_slot, error);
      if (status != EP_STATUS_OK) return status;
    }
    const Dispatch dispatch = {kernel_.get(), groups_for(p.count), group_size};
    CommandQueue& queue = *stream.queue;
    if (kind_ == EP_PRIMITIVE_binary) {
      return queue.launch(dispatch, {buffers[0], buffers[1], buffers[2], faults}, p, error);
    }
    switch (operands_) {
      case 1: return queue.launch(dispatch, {buffers[0]}, p, error);
      case 2: return queue.launch(dispatch, {buffers[0], buffers[1]}, p, error);
      default: return queue.launch(dispatch, {buffers[0], buffers[1], buffers[2], buffers[3]}, p, error);
    }
  }

 private:
  MapParameters parameters(const ep_launch& launch) const {
    MapParameters p{};
    const OperandShape dst = shape_of(descs_[0], launch.shapes, 0);
    set_dims(dst.dims, dst.rank, &p);
    for (uint32_t i = 0; i < operands_; ++i) {
      if (is_scalar(descs_[i])) continue;
      const OperandShape shape = shape_of(descs_[i], launch.shapes, i);
      std::copy_n(shape.strides, dst.rank, p.strides[i]);
      p.offsets[i] = first_element(launch.operands[i], descs_[i].dtype);
    }
    for (uint32_t i = 0; i < std::min<uint32_t>(launch.scalar_count, most_map_inputs); ++i) {
      p.scalars[i] = element_scalars_ ? element_bits(launch.scalars[i], scalar_dtypes_[i])
                                      : scalar_bits(launch.scalars[i], scalar_dtypes_[i]);
    }
    p.op = op_;
    p.dst_dtype = descs_[0].dtype;
    p.src_dtype = descs_[operands_ - 1].dtype;
    p.scalar_mask = scalar_mask_;
    return p;
  }

  std::shared_ptr<Kernel> kernel_;
  std::array<ep_operand_desc, most_map_operands> descs_{};
  int32_t kind_;
  int32_t op_;
  uint32_t operands_;
  uint32_t scalar_mask_;
  bool element_scalars_;
  bool checks_divisor_;
  std::array<int32_t, most_map_inputs> scalar_dtypes_{};
};

}  // namespace

Refusal Elementwise::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return plan_of(device, desc).refusal;
}

Refusal Elementwise::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const Plan plan = plan_of(device, desc);
  if (plan.refusal) return plan.refusal;
  std::shared_ptr<Kernel> kernel;
  const std::string name = plan.kernel + (is_flat(desc) ? "_flat" : "_strided");
  if (Refusal refusal = device.programs->get(plan.text, plan.options, name, &kernel)) return refusal;
  *out = make_primitive<ElementwisePrimitive>(device, plan, desc, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
