// The oracle of the compiler: runs a kernel's stages one number at a time, by the rows of scalar_ops.def in
// primitives/reference. A result of f32 is rounded once per op; reductions of floats accumulate in double.
//
// A scheduled kernel runs loop by loop as its text says, and a stage in registers holds one number: so a schedule that
// reads what is not there yet, or not there any more, is an error and not a lucky number. Between two barriers the
// work-items of a group run one after another, the last one first, and none sees what another wrote into shared
// storage.
#pragma once

#include <cstdint>
#include <span>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// `parameters` in the order of the kernel's, `buffers` the addresses of its buffers.
// Errors: invalid_argument for an element beyond its buffer, for one stored twice, and for a stage that is not there.
Status interpret(const Kernel& kernel, std::span<const int64_t> parameters, std::span<void* const> buffers);

// The value of `size` for these parameters. Errors: invalid_argument, if it has none (a division by 0).
Result<int64_t> size_of(const Kernel& kernel, SymDim size, std::span<const int64_t> parameters);

// How many items a launch of a scheduled kernel has.
Result<int64_t> item_count(const Kernel& kernel, std::span<const int64_t> parameters);

}  // namespace tenon::codegen
