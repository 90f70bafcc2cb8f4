// The primitive cache: the created primitives of each device, by descriptor. It is the only cache below the per-thread
// tables. Internal. Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/device_state.h"
#include "core/primitive/primitive.h"
#include "primitives/status/status.h"

namespace tenon {

// A device's answer to a descriptor: the primitive, and what the device requires of its operands.
struct Resolved {
  Primitive* primitive = nullptr;  // the caller owns one reference
  int32_t alignment[EP_MAX_OPERANDS] = {};
  bool baked = false;        // scalars are part of the descriptor: the primitive serves only these values
  bool any_strides = false;  // strides above 1 are open: the primitive serves other strides too
  bool limited = false;      // the primitive serves operands only up to a size
};

// Selects if dims and strides that the device can leave open become EP_ANY. `numbers` is for shapes beyond the limits
// of a primitive with open dims.
enum class Sizes : uint8_t { open, numbers };

// Asks `device` for `desc` (static dims, scalars not baked) and gets or creates the primitive. With Sizes::open, dims
// and strides that the device can leave open become EP_ANY, unless `desc` exceeds the device's limits. Scalars that the
// device wants baked are taken from `scalars` (by slot, already converted to their dtype). A requested precision is
// passed to the provider only if it is above the device's stated one; it counts as refused unless the provider confirms
// it. EP_PRECISION_RELAXED becomes EP_PRECISION_DEFAULT unless the provider says that it makes use of it. Errors:
// unsupported, with the provider's reason, or with the reason why the precision is not met. A refusal at
// creation is cached.
Result<Resolved> resolve_primitive(DeviceState* device, const ep_primitive_desc& desc, const ep_scalar* scalars,
                                   uint32_t scalar_count, Sizes sizes = Sizes::open);

// The number of primitives and bytes that the cache of `device` holds, and its limit. The least recently used
// primitives are dropped first.
struct PrimitiveCacheStats {
  uint64_t primitives = 0;
  uint64_t bytes = 0;
  uint64_t byte_limit = 0;
};
PrimitiveCacheStats primitive_cache_stats(DeviceState* device);
// Drops every primitive of `device` that has no other user.
void clear_primitive_cache(DeviceState* device);
// Destroys every primitive of `device`, which is closing. A primitive that is still referenced is empty afterwards.
void destroy_primitives(DeviceState* device);

}  // namespace tenon
