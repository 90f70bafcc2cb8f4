// HostDevice: a synchronous device in host memory with just enough for the machine to copy to and from.
#pragma once

#include <cstdlib>
#include <cstring>

#include "core/device/device_state.h"
#include "core/memory/caching_allocator.h"

struct ep_memory;  // the asynchronous fake has its own; here it only points to host memory

namespace tenon::testing {

class HostDevice {
 public:
  HostDevice() {
    opened_.spelling = "host:0";
    opened_.info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
    loader::MemoryPool pool;
    pool.flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
    pool.minimum_alignment = 64;
    opened_.info.pools.push_back(pool);
    ep_device_ops& ops = opened_.ops;
    ops.memory_allocate = [](ep_device*, uint32_t, uint64_t size, ep_memory** out, ep_error**) -> ep_status {
      *out = static_cast<ep_memory*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096));
      return EP_STATUS_OK;
    };
    ops.memory_free = [](ep_device*, ep_memory* memory) { std::free(memory); };
    ops.memory_map = [](ep_device*, ep_memory* memory, void** out, ep_error**) -> ep_status {
      *out = memory;
      return EP_STATUS_OK;
    };
    ops.copy = [](ep_stream*, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) -> ep_status {
      std::memcpy(address(dst), address(src), size);
      return EP_STATUS_OK;
    };
    ops.upload = [](ep_stream*, ep_buffer dst, const void* src, uint64_t size, ep_error**) -> ep_status {
      std::memcpy(address(dst), src, size);
      return EP_STATUS_OK;
    };
    ops.download = [](ep_stream*, void* dst, ep_buffer src, uint64_t size, ep_error**) -> ep_status {
      std::memcpy(dst, address(src), size);
      return EP_STATUS_OK;
    };
    state_.opened = &opened_;
    state_.ops = ops;
    state_.id = 60;
    state_.synchronous = state_.mapped = true;
    state_.allocator = memory::make_allocator(&opened_);
  }

  DeviceState* state() { return &state_; }

 private:
  static char* address(ep_buffer buffer) { return reinterpret_cast<char*>(buffer.memory) + buffer.offset; }

  loader::OpenDevice opened_;
  DeviceState state_;
};

}  // namespace tenon::testing
