// The epilogues of a descriptor. The first ones become oneDNN post-ops, the others a Tail.
#pragma once

#include <vector>

#include "providers/cpu/onednn/program.h"

namespace tenon::provider::cpu {

// The number of leading epilogues that become post-ops. A Tail computes the others.
uint32_t post_op_count(const ep_primitive_desc& desc);

// The reason why an epilogue of `desc` can be neither a post-op nor part of a Tail. Pure.
Refusal why_no_epilogues(const ep_device& device, const ep_primitive_desc& desc);

// A tensor or scalar operand of post-op number `position`.
struct EpilogueOperand {
  int32_t position;
  int32_t operand;  // number in the descriptor; -1: launch scalar `scalar`
  uint32_t scalar;
  dnnl::memory::desc given;   // layout of the operand
  dnnl::memory::desc wanted;  // layout that the post-op reads
  bool sum = false;           // DST holds the operand before the launch, and the result is added to it
};

// Adds the post_op_count(desc) post-ops to `attr`. `layout` makes the memory descriptor of an operand with DST's dims.
// An operand as large as the result must have the result's layout `dst`: oneDNN 2.6 accepts other layouts but misreads
// them. With `sum`, the first addition of such an operand copies the operand to DST, and oneDNN adds its result to DST.
// Without `sum`, oneDNN's convolution by gemm adds a separate operand one element at a time, which is very slow.
std::vector<EpilogueOperand> add_epilogues(const ep_primitive_desc& desc,
                                           dnnl::memory::desc (*layout)(const ep_operand_desc& operand, int32_t rank),
                                           const dnnl::memory::desc& dst, dnnl::primitive_attr* attr, bool sum = false);

// Adds the arguments of the step that has the post-ops. `result` is the memory of the step's DST.
void add_epilogue_arguments(const std::vector<EpilogueOperand>& operands, int32_t result, Program* program,
                            std::vector<ProgramArgument>* arguments);

}  // namespace tenon::provider::cpu
