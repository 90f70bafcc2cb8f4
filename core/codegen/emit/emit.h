// A scheduled kernel as text in a dialect that a device compiles (ep_api.h, "Kernel modules").
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// A whole text of one entry, and what a module_create is told of it. Equal kernels give equal texts, byte for byte.
struct KernelText {
  int32_t dialect = 0;  // EP_DIALECT_*
  std::string entry;    // the kernel's name
  std::string text;
  uint32_t buffer_count = 0;     // in the order of Kernel::buffers
  uint32_t parameter_bytes = 0;  // an int64 per parameter, in the order of Kernel::parameters
  uint32_t shared_bytes = 0;     // of `local`, or of a group
  std::array<uint32_t, 3> group{1, 1, 1};
  uint64_t flags = 0;  // EP_ENTRY_FLAG_*
};

// In how many bits a text computes sizes and indices: 64, or 32, which is right where narrow_conditions (narrow.h)
// hold.
enum class IndexBits : uint8_t { wide, narrow };

// In EP_DIALECT_C, with vectors of 16 numbers. A reduction adds up 16 lanes times the vectors that its loop unrolls,
// and then the lanes pairwise: an order that depends on the schedule alone, whatever items one call computes. Errors:
// what verify() refuses; unsupported for an op without a text in C, and for a row that is longer than any number known
// when the kernel is made.
Result<KernelText> emit_c(const Kernel& kernel);

// In EP_DIALECT_OPENCL_C, EP_DIALECT_GLSL or EP_DIALECT_CUDA_C, of a kernel with loops of work_items. An item is a
// group of a launch, whose groups may be laid out along x and y in any way; those beyond the items do nothing.
// `features` are those of the device's ep_dialect_info. Errors: what verify() refuses; unsupported, for a dtype or a
// store that the features do not have, with the feature's name.
Result<KernelText> emit_groups(const Kernel& kernel, int32_t dialect, uint64_t features,
                               IndexBits bits = IndexBits::wide);

}  // namespace tenon::codegen
