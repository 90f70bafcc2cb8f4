// The epilogues of a descriptor as oneDNN's post-ops.
#pragma once

#include <vector>

#include "providers/cpu/onednn/program.h"

namespace tenon::provider::cpu {

// Why some epilogue of `desc` has no post-op; pure.
Refusal why_no_epilogues(const ep_primitive_desc& desc);

// A tensor or scalar operand of post-op number `position`.
struct EpilogueOperand {
  int32_t position;
  int32_t operand;  // of the descriptor; -1: launch scalar `scalar`
  uint32_t scalar;
  dnnl::memory::desc given;   // as it lies
  dnnl::memory::desc wanted;  // as the post-op reads it
};

// Adds the post-ops to `attr`; `layout` makes the memory descriptor of an operand with DST's dims. A tensor as large as
// the result is wanted in the result's layout `dst`: oneDNN 2.6 takes others and misreads them.
std::vector<EpilogueOperand> add_epilogues(const ep_primitive_desc& desc,
                                           dnnl::memory::desc (*layout)(const ep_operand_desc& operand, int32_t rank),
                                           const dnnl::memory::desc& dst, dnnl::primitive_attr* attr);

// The arguments of the step that carries them.
void add_epilogue_arguments(const std::vector<EpilogueOperand>& operands, Program* program,
                            std::vector<ProgramArgument>* arguments);

}  // namespace tenon::provider::cpu
