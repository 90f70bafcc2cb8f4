// The reference interpreter of loop IR: it runs a kernel's stages one number at a time, with the scalar functions of
// primitives/reference. An f32 result is rounded once per op; reductions of floats accumulate in double.
//
// A scheduled kernel runs loop by loop, as its text would, and a stage in registers holds one number. So a schedule
// that reads a number too early or too late gets an error instead of a number that happens to be right. Between two
// barriers the work-items of a group run one after another, the last one first, and none sees what another wrote into
// shared storage.
#pragma once

#include <cstdint>
#include <span>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// `parameters` and `buffers` (addresses) are in the kernel's order. Errors: invalid_argument for an element outside of
// its buffer, an element that is stored twice, or a read of a stage that has no number.
Status interpret(const Kernel& kernel, std::span<const int64_t> parameters, std::span<void* const> buffers);

// The value of `size` for these parameters. Errors: invalid_argument if it has none (a division by 0).
Result<int64_t> size_of(const Kernel& kernel, SymDim size, std::span<const int64_t> parameters);

// Number of items of a launch of a scheduled kernel.
Result<int64_t> item_count(const Kernel& kernel, std::span<const int64_t> parameters);

}  // namespace tenon::codegen
