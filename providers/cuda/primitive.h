// The base of every primitive of this provider, how one is made, and how a kernel is launched.
#pragma once

#include <new>
#include <utility>

#include "providers/cuda/device.h"
#include "sdk/provider/implementation.h"

// One created primitive. Launches may run on several threads at once, on distinct streams: launch() changes nothing in
// it that is not locked. The device's context is current in launch().
struct ep_primitive {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  uint64_t size = 0;  // of the whole object

  ep_primitive() = default;
  virtual ~ep_primitive() = default;
  ep_primitive(const ep_primitive&) = delete;
  ep_primitive& operator=(const ep_primitive&) = delete;

  virtual ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) = 0;
  // Bytes of workspace a launch of these shapes needs; `shapes` is NULL where the descriptor is static.
  virtual uint64_t workspace(const ep_shape* shapes) const;
  // False: no launch needs any, whatever its shape.
  virtual bool has_workspace() const { return false; }
};

namespace tenon::provider::cuda {

// A primitive of class T in memory of the host. Throws std::bad_alloc.
template <class T, class... Args>
T* make_primitive(ep_device& device, Args&&... args) {
  void* place = device.host->allocate(device.host, sizeof(T), alignof(T));
  if (place == nullptr) throw std::bad_alloc();
  try {
    T* primitive = new (place) T(std::forward<Args>(args)...);
    primitive->host = device.host;
    primitive->device = &device;
    primitive->size = sizeof(T);
    return primitive;
  } catch (...) {
    device.host->release(device.host, place, sizeof(T));
    throw;
  }
}

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

// The kernel `name`, or why it cannot be had. The device's context is current.
Refusal find_kernel(ep_device& device, Family family, const char* name, CUfunction* out);

}  // namespace tenon::provider::cuda
