// Tests texts in the dialects of work-items: OpenCL C is compiled and run if OpenCL finds a device, GLSL is compiled by
// glslang, CUDA C by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "core/codegen/emit/emit.h"
#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// Returns a sentence for each compiler that this machine lacks; empty: it has all.
std::string missing_compilers();

// Schedules `kernel`, which has no loops, for groups; interprets it before and after; prints it in the three dialects,
// compiles the texts, runs the OpenCL text, and compares. Then does the same for a device that prefers packs of 16
// bytes, with indices of 32 bits. Returns the text of the loops without packs.
std::string expect_groups(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                          double absolute);
// Like the function above, for a kernel that has loops.
void expect_dialects(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute, IndexBits bits = IndexBits::wide);

// Returns the PTX that NVRTC makes of a text in CUDA C; empty: NVRTC is not installed.
std::string ptx_of(const KernelText& text);

}  // namespace tenon::codegen
