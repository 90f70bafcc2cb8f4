// The texts that the kit lets devices compile, one row per dialect. All dialects have the same kernels. Only the first
// `count` items compute. In dialects with groups, the row gives the size of a group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::conformance {

inline constexpr uint64_t kNumbers = 120;

// Parameters of the kernel `rooms`; the other kernels have only the first member. In GPU dialects `items` follows them.
struct Numbers {
  int64_t count = 0;
  int64_t used = kNumbers;
  int64_t all[kNumbers];
};

// The properties of a kernel that are the same in all dialects.
struct KernelRow {
  std::string_view name;
  uint32_t buffers;
  uint32_t parameter_bytes;
  uint64_t flags;
  uint64_t features;  // EP_DIALECT_FEATURE_* that it needs; other devices need not compile it
  bool shares;        // uses kNumbers * 8 bytes of shared or local memory
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
  bool one_entry;               // a text has only one entry
  std::string_view front;       // begins every text
  std::string_view kernels[6];  // one text per kernel, in the order of the table kKernels
  std::string_view wrong;       // an entry `f` without arguments; its third line does not compile
};

// Returns NULL if the kit has no text in `dialect`.
const DialectRow* dialect_row(int32_t dialect);

// Returns a text with the kernels whose numbers are in `kernels`.
std::string text_of(const DialectRow& row, const std::vector<size_t>& kernels);

}  // namespace tenon::conformance
