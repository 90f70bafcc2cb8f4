// The epilogues of a descriptor: as oneDNN's post-ops as far as those do, the others as a Tail.
#pragma once

#include <vector>

#include "providers/cpu/onednn/program.h"

namespace tenon::provider::cpu {

// How many epilogues are post-ops; the others, from there on, are for a Tail.
uint32_t post_op_count(const ep_primitive_desc& desc);

// Why some epilogue of `desc` can be neither; pure.
Refusal why_no_epilogues(const ep_device& device, const ep_primitive_desc& desc);

// A tensor or scalar operand of post-op number `position`.
struct EpilogueOperand {
  int32_t position;
  int32_t operand;  // of the descriptor; -1: launch scalar `scalar`
  uint32_t scalar;
  dnnl::memory::desc given;   // as it lies
  dnnl::memory::desc wanted;  // as the post-op reads it
  bool sum = false;           // DST holds it beforehand, and the work is added to it
};

// Adds the post_op_count(desc) post-ops to `attr`; `layout` makes the memory descriptor of an operand with DST's dims.
// A tensor as large as the result is wanted in the result's layout `dst`: oneDNN 2.6 takes others and misreads them.
// With `sum` a first addition of such a tensor is made by working onto a copy of it: oneDNN's convolution by gemm adds
// a separate operand element by element (148 ms where the convolution takes 1.5).
std::vector<EpilogueOperand> add_epilogues(const ep_primitive_desc& desc,
                                           dnnl::memory::desc (*layout)(const ep_operand_desc& operand, int32_t rank),
                                           const dnnl::memory::desc& dst, dnnl::primitive_attr* attr, bool sum = false);

// The arguments of the step that carries them; `result` is the memory of its DST.
void add_epilogue_arguments(const std::vector<EpilogueOperand>& operands, int32_t result, Program* program,
                            std::vector<ProgramArgument>* arguments);

}  // namespace tenon::provider::cpu
