// Prints a scheduled kernel as text in a dialect that a device compiles (ep_api.h, "Kernel modules").
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// The whole text of one entry, and the facts that module_create needs. Equal kernels give equal texts, byte for byte.
struct KernelText {
  int32_t dialect = 0;  // EP_DIALECT_*
  std::string entry;    // the kernel's name
  std::string text;
  uint32_t buffer_count = 0;     // in the order of Kernel::buffers
  uint32_t parameter_bytes = 0;  // an int64 per parameter, in the order of Kernel::parameters
  uint32_t shared_bytes = 0;     // bytes of `local` memory, or of a group's shared memory
  std::array<uint32_t, 3> group{1, 1, 1};
  uint64_t flags = 0;  // EP_ENTRY_FLAG_*
};

// The width in which a text computes sizes and indices: 64 bits (wide) or 32 bits (narrow). Narrow is correct if
// narrow_conditions (narrow.h) hold.
enum class IndexBits : uint8_t { wide, narrow };

// Prints in EP_DIALECT_C, with vectors of 16 numbers. A reduction adds into 16 lanes times the vectors that its loop
// unrolls, and then adds the lanes pairwise. This order depends on the schedule alone, not on the items of a call.
// Errors: those of verify(); unsupported for an op without a C text, and for a row whose length has no known bound.
Result<KernelText> emit_c(const Kernel& kernel);

// Prints in EP_DIALECT_OPENCL_C, EP_DIALECT_GLSL or EP_DIALECT_CUDA_C; the kernel has loops of work_items. Each item is
// one group of a launch. The groups may be laid out along x and y in any way; groups beyond the items do nothing.
// `features` are those of the device's ep_dialect_info. Errors: those of verify(); unsupported for a dtype or a store
// that needs a feature the device lacks, with the feature's name.
Result<KernelText> emit_groups(const Kernel& kernel, int32_t dialect, uint64_t features,
                               IndexBits bits = IndexBits::wide);

}  // namespace tenon::codegen
