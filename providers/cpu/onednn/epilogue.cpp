#include "providers/cpu/onednn/epilogue.h"

#include "providers/cpu/elementwise/tail.h"

namespace tenon::provider::cpu {
namespace {

using dnnl::algorithm;

// Returns the oneDNN post-op for an epilogue if it keeps NaN, as scalar_ops.def requires. Others lose NaN, because
// oneDNN clamps with the processor's min and max: its relu turns NaN into 0 and its exp turns NaN into the largest
// float.
algorithm post_op(const ep_epilogue& epilogue) {
  if (epilogue.arity == 1) {
    switch (epilogue.op) {
      case EP_UNARY_square: return algorithm::eltwise_square;
      case EP_UNARY_abs: return algorithm::eltwise_abs;
      case EP_UNARY_sqrt: return algorithm::eltwise_sqrt;
      default: return algorithm::undef;
    }
  }
  switch (epilogue.op) {
    case EP_BINARY_add: return algorithm::binary_add;
    case EP_BINARY_sub: return algorithm::binary_sub;
    case EP_BINARY_mul: return algorithm::binary_mul;
    case EP_BINARY_div: return algorithm::binary_div;
    default: return algorithm::undef;
  }
}

}  // namespace

uint32_t post_op_count(const ep_primitive_desc& desc) {
  uint32_t count = 0;
  while (count < desc.epilogue_count && post_op(desc.epilogues[count]) != algorithm::undef) ++count;
  return count;
}

Refusal why_no_epilogues(const ep_device& device, const ep_primitive_desc& desc) {
  if (desc.epilogue_count > EP_MAX_EPILOGUES) return Refusal::because("%u epilogues", desc.epilogue_count);
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (epilogue.arity == 1) continue;
    if (epilogue.arity != 2) return Refusal::because("epilogue %u has arity %d", i, epilogue.arity);
    if (epilogue.role == 0) {
      if (epilogue.scalar < 0 || epilogue.scalar >= EP_MAX_SCALARS)
        return Refusal::because("epilogue scalar %d", epilogue.scalar);
      continue;
    }
    const ep_operand_desc* tensor = operand(desc, epilogue.role);
    if (tensor == nullptr) return Refusal::because("epilogue %u has no operand of role %d", i, epilogue.role);
    if (tensor->dtype != desc.operands[0].dtype) {
      return Refusal::because("an epilogue operand of %s", dtype_name(tensor->dtype));
    }
  }
  return why_no_tail(device, desc, post_op_count(desc));
}

std::vector<EpilogueOperand> add_epilogues(const ep_primitive_desc& desc,
                                           dnnl::memory::desc (*layout)(const ep_operand_desc& operand, int32_t rank),
                                           const dnnl::memory::desc& dst, dnnl::primitive_attr* attr, bool sum) {
  const auto rank = static_cast<int32_t>(dst.dims().size());
  std::vector<EpilogueOperand> operands;
  dnnl::post_ops post_ops;
  for (uint32_t i = 0; i < post_op_count(desc); ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (epilogue.arity == 1) {
      post_ops.append_eltwise(1.0f, post_op(epilogue), 0.0f, 0.0f);
      continue;
    }
    EpilogueOperand tensor{static_cast<int32_t>(i), -1, static_cast<uint32_t>(epilogue.scalar), {}, {}, false};
    if (epilogue.role == 0) {
      const dnnl::memory::dims ones(static_cast<size_t>(rank), 1);
      tensor.given = tensor.wanted = memory_desc(ones, ones);
    } else {
      tensor.operand = find_operand(desc, epilogue.role);
      tensor.given = layout(desc.operands[tensor.operand], rank);
      tensor.wanted = tensor.given.dims() == dst.dims() ? dst : tensor.given;
    }
    tensor.sum =
        sum && i == 0 && epilogue.op == EP_BINARY_add && epilogue.role != 0 && tensor.given.dims() == dst.dims();
    if (tensor.sum)
      post_ops.append_sum(1.0f);
    else
      post_ops.append_binary(post_op(epilogue), tensor.wanted);
    operands.push_back(tensor);
  }
  attr->set_post_ops(post_ops);
  return operands;
}

void add_epilogue_arguments(const std::vector<EpilogueOperand>& operands, int32_t result, Program* program,
                            std::vector<ProgramArgument>* arguments) {
  for (const EpilogueOperand& tensor : operands) {
    if (tensor.sum) {
      program->step(make_reorder(program->engine(), tensor.given, tensor.wanted),
                    {{DNNL_ARG_FROM, program->operand(tensor.operand, tensor.given)}, {DNNL_ARG_TO, result}});
      continue;
    }
    const int32_t memory = tensor.operand < 0
                               ? program->scalar(tensor.scalar, tensor.wanted)
                               : program->reordered(program->operand(tensor.operand, tensor.given), tensor.wanted);
    arguments->push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(tensor.position) | DNNL_ARG_SRC_1, memory});
  }
}

}  // namespace tenon::provider::cpu
