// The base of every primitive of the cuda provider, and the launch of a kernel.
#pragma once

#include "providers/cuda/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Threads: several may launch it at once, on distinct streams, so launch() changes only locked
// members. The device's context is current in launch().
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) = 0;
};

namespace tenon::provider::cuda {

// The size of a launch: `blocks` blocks of `threads` threads, which share `shared_bytes` bytes of memory.
struct Geometry {
  int64_t blocks;
  int32_t threads;
  int32_t shared_bytes = 0;
};

inline constexpr int32_t block_threads = 256;       // threads of a block in kernels without teams
inline constexpr int64_t most_blocks = 0x7fffffff;  // limit of a grid's first axis, on every device

// Enough blocks for `items` threads, up to most_blocks. Kernels loop with the size of the grid as step.
Geometry blocks_for(int64_t items, int32_t threads = block_threads);

// Launches `function` with one parameter, `arguments`.
ep_status launch_kernel(ep_stream* stream, CUfunction function, const Geometry& geometry, const void* arguments,
                        ep_error** error);

// Calls launch(target) with the fault target of a launch named `tag`, whose faults blame `operand`. If the launch
// fails, the entry is removed.
template <class Launch>
ep_status launch_watched(ep_stream* stream, uint64_t tag, int32_t operand, const Launch& launch, ep_error** error) {
  const CUresult result = stream->faults->make_room(*stream->device->driver, stream->handle);
  if (result != CUDA_SUCCESS) return driver_failed(stream->device, result, "allocating memory for faults", error);
  const uint64_t name = stream->records ? stream->recorded_calls : tag;
  const ep_status status = launch(stream->faults->add(name, operand));
  if (status != EP_STATUS_OK) stream->faults->cancel();
  return status;
}

// A driver failure that another implementation could not avoid: no memory, or a lost device. make() throws it, and
// creating the primitive then fails.
struct DriverError {
  CUresult result;
};

// Finds the kernel `name`, or returns the refusal. The device's context is current. Throws DriverError.
Refusal find_kernel(ep_device& device, Family family, const char* name, CUfunction* out);
// Lets launches of `function` give a block `bytes` bytes of shared memory. The device's context is current.
Refusal allow_shared_memory(ep_device& device, CUfunction function, int64_t bytes);

}  // namespace tenon::provider::cuda
