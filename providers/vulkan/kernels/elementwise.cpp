// fill, copy, unary, binary, ternary. If every operand is contiguous, an invocation computes an element or a pack of
// elements, depending on the addresses of the launch. If an operand is strided, each launch passes dims and strides.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/geometry.h"
#include "providers/vulkan/kernels/kernels.h"
#include "providers/vulkan/kernels/packs.h"
#include "sdk/provider/elementwise.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t most_threads = 256;

enum MoveMode : uint32_t { MOVE_FILL, MOVE_COPY, MOVE_WHERE };

// Mirrors the push constants of shaders/shape.glsl.
struct Push {
  uint64_t dst;
  uint64_t src[most_inputs];
  uint64_t shape;
  uint64_t fault;
  uint64_t scalars[most_inputs];
  uint32_t count;
  uint32_t packs;
};
struct ShapeBlock {
  uint32_t rank;
  uint32_t dims[EP_MAX_RANK];
  uint32_t strides[1 + most_inputs][EP_MAX_RANK];
};

// The plan of a descriptor: the module, all constants except the layout's, and the form of scalars.
struct Plan {
  std::string shader;
  std::string variant;
  Constants constants;
  bool element_scalars = false;  // scalars are passed in their dtype, not in the type of the class
  int32_t scalar_dtypes[most_inputs]{};
  bool checks_divisor = false;
  Refusal refusal;
};

uint32_t threads_of(const ep_device& device) { return std::min(most_threads, device.context->most_threads()); }

// Refuses unless the scalar function takes `dtype` and its result type matches the destination.
Refusal check_row_and_result(const ep_primitive_desc& desc, const scalar::RowFacts& facts, const char* arity,
                             int32_t op, const char* name, int32_t dtype) {
  if (Refusal refusal = check_row(facts, arity, op, name, dtype)) return refusal;
  return check_result(desc, facts, dtype);
}

// fill, where, and copy between equal types move elements as bits.
Plan plan_move(const ep_device& device, const ep_primitive_desc& desc, MoveMode mode) {
  Plan plan;
  const int32_t dtype = desc.operands[0].dtype;
  plan.refusal = why_not_stored(device.context->physical->features, dtype);
  for (uint32_t i = 1; i < desc.operand_count && !plan.refusal; ++i) {
    const int32_t expected = mode == MOVE_WHERE && i == 1 ? EP_DTYPE_bool : dtype;
    const ep_operand_desc& input = desc.operands[i];
    if (input.dtype != expected) {
      plan.refusal = Refusal::because("an input of %s, not %s", dtype_name(input.dtype), dtype_name(expected));
    } else if (!is_scalar(input)) {
      plan.refusal = why_not_stored(device.context->physical->features, input.dtype);
    }
    plan.scalar_dtypes[i - 1] = expected;
  }
  if (mode == MOVE_FILL) plan.scalar_dtypes[0] = dtype;
  plan.element_scalars = true;
  plan.shader = "move";
  plan.variant = dtype_size(dtype) == 8 ? "long" : "bits";
  const uint32_t absent[] = {0b111, 0b110, 0};  // by mode: inputs without memory
  plan.constants = {threads_of(device), 32, mode, 0, 0, absent[mode] | scalar_mask(desc)};
  return plan;
}

// copy between different types.
Plan plan_cast(const ep_device& device, const ep_primitive_desc& desc) {
  Plan plan;
  const Features& features = device.context->physical->features;
  for (uint32_t i = 0; i < 2 && !plan.refusal; ++i) {
    const int32_t dtype = desc.operands[i].dtype;
    plan.refusal = why_not_stored(features, dtype);
    if (!plan.refusal && class_of_dtype(dtype) == nullptr) {
      plan.refusal = Refusal::because("no kernel casts %s", dtype_name(dtype));
    }
  }
  plan.shader = "cast";
  plan.variant = "any";
  plan.constants = {threads_of(device),
                    32,
                    0,
                    static_cast<uint32_t>(desc.operands[1].dtype),
                    static_cast<uint32_t>(desc.operands[0].dtype),
                    0};
  return plan;
}

Plan plan_row(const ep_device& device, const ep_primitive_desc& desc, int32_t op, bool checked) {
  Plan plan;
  const int32_t inputs = static_cast<int32_t>(desc.operand_count) - 1;
  const int32_t dtype = desc.operands[inputs].dtype;
  const Features& features = device.context->physical->features;
  plan.refusal = why_not_computed(features, dtype);
  if (!plan.refusal) plan.refusal = why_not_stored(features, desc.operands[0].dtype);
  if (plan.refusal) return plan;
  for (int32_t i = 1; i < inputs; ++i) {
    if (desc.operands[i].dtype != dtype) {
      plan.refusal = Refusal::because("inputs of %s and %s", dtype_name(desc.operands[i].dtype), dtype_name(dtype));
    }
  }
  std::fill(std::begin(plan.scalar_dtypes), std::end(plan.scalar_dtypes), dtype);
  plan.checks_divisor = checked && !is_floating(dtype);
  plan.shader = fmt::format("map{}", inputs);
  plan.variant = class_of_dtype(dtype);
  plan.constants = {threads_of(device),
                    width_of(dtype),
                    static_cast<uint32_t>(op),
                    static_cast<uint32_t>(dtype),
                    static_cast<uint32_t>(desc.operands[0].dtype),
                    scalar_mask(desc)};
  return plan;
}

Plan refused(const Refusal& refusal) {
  Plan plan;
  plan.refusal = refusal;
  return plan;
}

Plan plan_unary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return refused(refusal);
  const int32_t op = desc.attributes.unary.op;
  if (Refusal refusal =
          check_row_and_result(desc, scalar::unary_facts(op), "unary", op, unary_name(op), desc.operands[1].dtype)) {
    return refused(refusal);
  }
  if (is_scalar(desc.operands[1])) return refused(Refusal::because("a scalar argument"));
  return plan_row(device, desc, op, false);
}

Plan plan_binary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B})) return refused(refusal);
  const int32_t op = desc.attributes.binary.op;
  const scalar::RowFacts facts = scalar::binary_facts(op);
  if (Refusal refusal = check_row_and_result(desc, facts, "binary", op, binary_name(op), desc.operands[2].dtype)) {
    return refused(refusal);
  }
  return plan_row(device, desc, op, facts.checks_divisor);
}

Plan plan_ternary(const ep_device& device, const ep_primitive_desc& desc) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C})) {
    return refused(refusal);
  }
  const int32_t op = desc.attributes.ternary.op;
  if (Refusal refusal = check_row_and_result(desc, scalar::ternary_facts(op), "ternary", op, ternary_name(op),
                                             desc.operands[2].dtype)) {
    return refused(refusal);
  }
  return op == EP_TERNARY_where ? plan_move(device, desc, MOVE_WHERE) : plan_row(device, desc, op, false);
}

Plan plan_any(const ep_device& device, const ep_primitive_desc& desc) {
  if (desc.operands[0].rank < 1) return refused(Refusal::because("the destination has rank %d", desc.operands[0].rank));
  switch (desc.kind) {
    case EP_PRIMITIVE_fill: {
      if (Refusal refusal = check_operands(desc, {EP_ROLE_DST})) return refused(refusal);
      return plan_move(device, desc, MOVE_FILL);
    }
    case EP_PRIMITIVE_copy: {
      if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return refused(refusal);
      if (is_scalar(desc.operands[1])) return refused(Refusal::because("a scalar argument"));
      return desc.operands[0].dtype == desc.operands[1].dtype ? plan_move(device, desc, MOVE_COPY)
                                                              : plan_cast(device, desc);
    }
    case EP_PRIMITIVE_unary: return plan_unary(device, desc);
    case EP_PRIMITIVE_binary: return plan_binary(device, desc);
    default: return plan_ternary(device, desc);
  }
}

class ElementwisePrimitive final : public ep_primitive {
 public:
  ElementwisePrimitive(const Plan& plan, const ep_primitive_desc& desc, std::shared_ptr<Pipeline> pipeline,
                       const Layout& layout)
      : pipeline_(std::move(pipeline)),
        operands_(static_cast<int32_t>(desc.operand_count)),
        layout_(layout),
        element_scalars_(plan.element_scalars),
        checks_divisor_(plan.checks_divisor),
        threads_(plan.constants[0]) {
    std::copy(desc.operands, desc.operands + operands_, operand_descs_.begin());
    std::copy(std::begin(plan.scalar_dtypes), std::end(plan.scalar_dtypes), scalar_dtypes_);
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    Push push{};
    const uint32_t scalars = std::min<uint32_t>(launch.scalar_count, most_inputs);
    for (uint32_t i = 0; i < scalars; ++i) {
      push.scalars[i] = element_scalars_ ? element_bits(launch.scalars[i], scalar_dtypes_[i])
                                         : scalar_bits(launch.scalars[i], scalar_dtypes_[i]);
    }
    CommandStream::Recording recording(*stream.commands);
    return for_each_piece(space_of(launch.shapes),
                          [&](const Space& piece) { return run_piece(recording, launch, piece, push, error); });
  }

 private:
  Space space_of(const ep_shape* shapes) const {
    Space space;
    const OperandShape dst = shape_of(operand_descs_[0], shapes, 0);
    space.rank = dst.rank;
    space.operands = operands_;
    std::copy_n(dst.dims, dst.rank, space.dims);
    for (int32_t i = 0; i < operands_; ++i) {
      if (is_scalar(operand_descs_[i])) continue;
      const OperandShape shape = shape_of(operand_descs_[i], shapes, static_cast<uint32_t>(i));
      std::copy_n(shape.strides, dst.rank, space.strides[i]);
      space.sizes[i] = dtype_size(operand_descs_[i].dtype);
    }
    return space;
  }

  ep_status run_piece(CommandStream::Recording& recording, const ep_launch& launch, const Space& piece, Push push,
                      ep_error** error) const {
    const uint64_t count = static_cast<uint64_t>(piece.count());
    uint64_t addresses[1 + most_inputs] = {};
    for (int32_t i = 0; i < operands_; ++i) {
      if (is_scalar(operand_descs_[i])) continue;
      addresses[i] = address_of(launch.operands[i]) + static_cast<uint64_t>(piece.offsets[i] * piece.sizes[i]);
    }
    const uint64_t packs = packs_in(layout_, count, addresses);
    // Each piece has its own fault slot: a shared slot would be freed with the first piece's batch, which may be
    // submitted before the next piece.
    if (checks_divisor_) {
      if (const ep_status status = recording.watch_faults(launch.tag, 2, &push.fault, error); status != EP_STATUS_OK) {
        return status;
      }
    }
    push.dst = addresses[0];
    std::copy_n(addresses + 1, most_inputs, push.src);
    push.count = static_cast<uint32_t>(count);
    push.packs = static_cast<uint32_t>(packs);
    if (layout_.strided) {
      StagedRange range;
      if (const ep_status status = recording.parameters(sizeof(ShapeBlock), &range, error); status != EP_STATUS_OK) {
        return status;
      }
      write_shape(piece, reinterpret_cast<ShapeBlock*>(range.host()));
      push.shape = range.address();
    }
    const uint64_t invocations = count - packs * static_cast<uint64_t>(layout_.pack - 1);
    const Grid grid = grid_of(divide_up(invocations, threads_), device->context->limits().maxComputeWorkGroupCount[0]);
    return recording.add_dispatch({pipeline_->handle(), &push, sizeof push, {grid.x, grid.y, 1}}, error);
  }

  static void write_shape(const Space& piece, ShapeBlock* block) {
    block->rank = static_cast<uint32_t>(piece.rank);
    for (int32_t axis = 0; axis < piece.rank; ++axis) {
      block->dims[axis] = static_cast<uint32_t>(piece.dims[axis]);
      for (int32_t i = 0; i < piece.operands; ++i) {
        block->strides[i][axis] = static_cast<uint32_t>(piece.strides[i][axis]);
      }
    }
  }

  std::shared_ptr<Pipeline> pipeline_;
  std::array<ep_operand_desc, 1 + most_inputs> operand_descs_{};
  int32_t operands_;
  Layout layout_;
  bool element_scalars_;
  bool checks_divisor_;
  uint32_t threads_;
  int32_t scalar_dtypes_[most_inputs]{};
};

}  // namespace

Refusal Elementwise::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return plan_any(device, desc).refusal;
}

Refusal Elementwise::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  Plan plan = plan_any(device, desc);
  if (plan.refusal) return plan.refusal;
  const Layout layout = layout_of(desc, device.context->packs);
  plan.constants.push_back(layout.strided ? 1 : 0);
  plan.constants.push_back(plan.checks_divisor ? 1 : 0);
  plan.constants.push_back(static_cast<uint32_t>(layout.pack));
  plan.constants.push_back(layout.repeated);
  plan.constants.push_back(static_cast<uint32_t>(dtype_size(desc.operands[0].dtype)));
  plan.constants.push_back(static_cast<uint32_t>(dtype_size(desc.operands[desc.operand_count - 1].dtype)));
  std::shared_ptr<Pipeline> pipeline;
  const std::string module = module_name(plan.shader, plan.variant, device.context->physical->features);
  if (Refusal refusal = compile(device, module, plan.constants, &pipeline)) return refusal;
  *out = make_primitive<ElementwisePrimitive>(device, plan, desc, std::move(pipeline), layout);
  return {};
}

}  // namespace tenon::provider::vulkan
