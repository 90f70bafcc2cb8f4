// The primitives created so far, per device, by descriptor: the one cache below the per-thread choice tables. Internal.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/device_state.h"
#include "core/kernel/kernel.h"
#include "primitives/status/status.h"

namespace tenon {

// A device's answer to a descriptor: the primitive and what the device asks of its operands.
struct Resolved {
  Kernel* kernel = nullptr;  // one reference, the caller's
  int32_t alignment[EP_MAX_OPERANDS] = {};
  bool baked = false;        // scalars stand in the descriptor: good for these values only
  bool any_strides = false;  // strides above 1 are open: good for others too
};

// Asks `device` for `desc` (static dims, scalars not baked) and gets or creates the primitive. Dims and strides the
// device can leave open become EP_ANY, scalars it wants baked are taken from `scalars` (by slot, already of their
// dtype). Errors: unsupported, with the provider's reason, also when only creation found out (remembered).
Result<Resolved> resolve_kernel(DeviceState* device, const ep_primitive_desc& desc, const ep_scalar* scalars,
                                uint32_t scalar_count);

// What the cache of `device` holds, and its bound. Least recently used primitives go first.
struct KernelCacheStats {
  uint64_t kernels = 0;
  uint64_t bytes = 0;
  uint64_t byte_limit = 0;
};
KernelCacheStats kernel_cache_stats(DeviceState* device);
// Drops every primitive of `device` nobody else holds on to.
void clear_kernel_cache(DeviceState* device);
// Destroys every primitive of a device that ends; kernels that someone still keeps are empty afterwards.
void destroy_kernels(DeviceState* device);

}  // namespace tenon
