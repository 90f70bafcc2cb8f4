// The base of every primitive of this provider, and how a kernel is launched.
#pragma once

#include "providers/cuda/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Launches may run on several threads at once, on distinct streams: launch() changes nothing in
// it that is not locked. The device's context is current in launch().
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) = 0;
};

namespace tenon::provider::cuda {

// What is launched: `blocks` blocks of `threads` threads.
struct Geometry {
  int64_t blocks;
  int32_t threads;
};

inline constexpr int32_t block_threads = 256;       // of kernels without teams
inline constexpr int64_t most_blocks = 0x7fffffff;  // of the first axis of a grid, on every device

// Enough blocks for `items` threads' worth of work, within the limit: kernels step by the size of the grid.
Geometry blocks_for(int64_t items, int32_t threads = block_threads);

// Launches `function` with `arguments`, its only parameter.
ep_status launch_kernel(ep_stream* stream, CUfunction function, const Geometry& geometry, const void* arguments,
                        ep_error** error);

// What the driver answered where that is no reason to look for another implementation: memory is out, or the device is
// lost. Thrown while a primitive is made, which then fails with it.
struct DriverError {
  CUresult result;
};

// The kernel `name`, or why it cannot be had. The device's context is current. Throws DriverError.
Refusal find_kernel(ep_device& device, Family family, const char* name, CUfunction* out);

}  // namespace tenon::provider::cuda
