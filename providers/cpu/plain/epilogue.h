// Computes epilogues on one row of results, with the kernels of elementwise/.
#pragma once

#include <vector>

#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {

bool is_epilogue_operand(const ep_operand_desc& operand);

// The reason why an epilogue has no kernel for results of type `compute`. Pure.
Refusal why_no_plain_epilogues(const ep_primitive_desc& desc, SimdLevel simd, int32_t compute);

// Applies the epilogues of `desc` to `row`, the `n` results along the innermost axis. `index` holds the indices of the
// outer axes.
void apply_epilogues(const ep_primitive_desc& desc, SimdLevel simd, int32_t compute, const ep_launch& launch,
                     const int64_t* index, int64_t n, void* row, std::vector<char>* buffer);

}  // namespace tenon::provider::cpu
