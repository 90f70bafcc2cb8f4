// The texts that the kit has devices compile: a row per dialect. Kernels are the same in each: `count` of their items
// compute, and groups of work-items, where there are groups, are as large as the row says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::conformance {

inline constexpr uint64_t kNumbers = 120;

// Parameters of `rooms`; the other kernels have the first member alone. `items` is what follows them in GPU dialects.
struct Numbers {
  int64_t count = 0;
  int64_t used = kNumbers;
  int64_t all[kNumbers];
};

// What all dialects know of a kernel.
struct KernelRow {
  std::string_view name;
  uint32_t buffers;
  uint32_t parameter_bytes;
  uint64_t flags;
  uint64_t features;  // EP_DIALECT_FEATURE_* without which a device has not to compile it
  bool shares;        // kNumbers * 8 bytes of shared or local memory
};
inline constexpr KernelRow kKernels[] = {
    {"reals", 2, 8, 0, 0, false},
    {"doubles", 2, 8, 0, EP_DIALECT_FEATURE_F64, false},
    {"integers", 2, 8, 0, EP_DIALECT_FEATURE_I64, false},
    {"vectors", 2, 8, 0, 0, false},
    {"rooms", 1, sizeof(Numbers), EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH, EP_DIALECT_FEATURE_I64, true},
    {"faults", 2, 8, EP_ENTRY_FLAG_FAULTS, EP_DIALECT_FEATURE_I64, false},
};

struct DialectRow {
  int32_t dialect;
  std::string_view name;        // "OpenCL C"
  uint32_t group;               // work-items of a group
  bool one_entry;               // a text has one entry
  std::string_view front;       // of every text
  std::string_view kernels[6];  // as kKernels
  std::string_view wrong;       // an entry `f` without arguments, whose third line no compiler takes
};

// NULL: the kit has no text in `dialect`.
const DialectRow* dialect_row(int32_t dialect);

// The text of the kernels whose numbers are in `kernels`.
std::string text_of(const DialectRow& row, const std::vector<size_t>& kernels);

}  // namespace tenon::conformance
