// Texts of the dialects of work-items: OpenCL C compiled and run by what OpenCL finds, GLSL compiled by glslang, CUDA C
// by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "core/codegen/emit/emit.h"
#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// What is missing for that on this machine, a sentence each; empty: nothing.
std::string missing_compilers();

// Schedules `kernel`, which has no loops, for groups; interprets it before and after; prints it in the three dialects,
// compiles those, runs the OpenCL text, and compares. The same once more for a device that likes packs of 16 bytes,
// with indices of 32 bits. The loops without packs as text.
std::string expect_groups(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                          double absolute);
// The same of a kernel that has loops.
void expect_dialects(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute, IndexBits bits = IndexBits::wide);

// The PTX that NVRTC makes of a text in CUDA C; empty: there is no NVRTC.
std::string ptx_of(const KernelText& text);

}  // namespace tenon::codegen
