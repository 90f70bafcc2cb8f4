// The memory plan: locations for values by lifetime, so that values that do not live at the same time share bytes.
// Internal to the library.
//
// Pure and deterministic: the same values give the same plan on every machine. Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::plan {

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// One value. It lives from the step that writes it to the last step that uses it, both included. So a value that a step
// reads and a value that the same step writes overlap in time, unless they are in one group.
struct Value {
  uint64_t bytes = 0;
  uint64_t alignment = 1;  // a power of two
  uint32_t first = 0;      // step
  uint32_t last = 0;       // step, at least `first`
  // Values with the same number share a location: values that a step updates in place, and views. kNone: no group. The
  // location has the size of the group's largest value and lives from the first step of any member to the last step of
  // any.
  uint32_t group = kNone;
};

// The limits of the blocks of a device's pool.
struct Pool {
  uint64_t largest_allocation = std::numeric_limits<uint64_t>::max();  // most bytes of one block
  bool exclusive = false;  // EP_POOL_FLAG_EXCLUSIVE: a block holds one value at a time, at its beginning
};

struct Location {
  uint32_t block = kNone;  // kNone: a value of 0 bytes, which has no location
  uint64_t offset = 0;     // bytes from the beginning of the block, a multiple of the value's alignment
};

struct MemoryPlan {
  std::vector<Location> locations;  // indexed by value
  std::vector<uint64_t> blocks;     // bytes of each block
  // The largest sum of the bytes of locations that are alive at one step: no plan needs less.
  uint64_t lower_bound = 0;

  uint64_t peak() const;  // bytes of all blocks
};

// A plan for `values` in as few blocks as `pool` allows. A block begins at a multiple of every alignment.
// Errors: invalid_argument for a value that no block can hold, an alignment that is not a power of two, or a lifetime
// that ends before it begins.
Result<MemoryPlan> plan_memory(std::span<const Value> values, const Pool& pool);

// Ok if `plan` is valid for `values`: each value lies in its block, aligned, and values that live at the same time
// share no byte unless they are in one group. Otherwise Code::internal with the two values and a step. plan_memory
// calls it in builds with assertions, such as sanitizer builds.
Status check_plan(std::span<const Value> values, const Pool& pool, const MemoryPlan& plan);

}  // namespace tenon::plan
