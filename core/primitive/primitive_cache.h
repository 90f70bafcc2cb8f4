// The kernel cache: the primitives created so far, per device, by descriptor. It is the one cache below the per-thread
// tables. Internal. Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/device_state.h"
#include "core/primitive/primitive.h"
#include "primitives/status/status.h"

namespace tenon {

// A device's answer to a descriptor: the primitive, and the demands of the device on its operands.
struct Resolved {
  Primitive* kernel = nullptr;  // one reference, the caller's
  int32_t alignment[EP_MAX_OPERANDS] = {};
  bool baked = false;        // scalars stand in the descriptor: the kernel serves these values only
  bool any_strides = false;  // strides above 1 are open: the kernel serves others too
  bool limited = false;      // the kernel serves operands up to a size alone
};

// Whether dims and strides that the device can leave open become EP_ANY. `numbers` is for shapes beyond the limits of a
// primitive with open dims.
enum class Sizes : uint8_t { open, numbers };

// Asks `device` for `desc` (static dims, scalars not baked) and gets or creates the primitive. With Sizes::open, dims
// and strides that the device can leave open become EP_ANY, unless `desc` is beyond the limits that it states. Scalars
// that it wants baked come from `scalars` (by slot, already of their dtype). A demand of precision reaches the provider
// only if it is above what the device states, and counts as refused unless the provider says that it keeps it. Errors:
// unsupported, with the provider's reason or why the demand is not kept. A refusal at creation is remembered.
Result<Resolved> resolve_kernel(DeviceState* device, const ep_primitive_desc& desc, const ep_scalar* scalars,
                                uint32_t scalar_count, Sizes sizes = Sizes::open);

// How much the cache of `device` holds, and its bound. The least recently used primitives are dropped first.
struct PrimitiveCacheStats {
  uint64_t kernels = 0;
  uint64_t bytes = 0;
  uint64_t byte_limit = 0;
};
PrimitiveCacheStats primitive_cache_stats(DeviceState* device);
// Drops every primitive of `device` that nobody else keeps.
void clear_primitive_cache(DeviceState* device);
// Destroys every primitive of `device`, which ends. A kernel that someone still keeps is empty afterwards.
void destroy_primitives(DeviceState* device);

}  // namespace tenon
