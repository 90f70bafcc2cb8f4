// CountingDevice: a device with memory and nothing else. It counts the objects that the host holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "loader/loader.h"

struct ep_memory {
  void* pointer;
  uint64_t size;
};

namespace tenon::memory {

class CountingDevice {
 public:
  struct Provider {
    std::atomic<uint64_t> held{0};
    std::atomic<uint64_t> blocks{0};
    std::atomic<uint64_t> allocations{0};
    uint64_t capacity = uint64_t{4} << 30;
    std::atomic<int> refuse{0};
  };

  CountingDevice() {
    provider().capacity = uint64_t{4} << 30;
    provider().refuse = 0;
    opened_.spelling = "test:0";
    loader::MemoryPool pool;
    pool.flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
    pool.minimum_alignment = 64;
    opened_.info.pools.push_back(pool);
    opened_.ops.memory_allocate = allocate;
    opened_.ops.memory_free = free;
    opened_.ops.memory_map = map;
  }

  loader::OpenDevice& opened() { return opened_; }
  // One provider for all devices, because the functions of the table cannot reach an object of the test.
  static Provider& provider() {
    static Provider one;
    return one;
  }

 private:
  static ep_status allocate(ep_device*, uint32_t, uint64_t size, ep_memory** out, ep_error** error) {
    Provider& one = provider();
    ++one.allocations;
    if (error != nullptr) *error = nullptr;
    if (one.refuse.load() != 0 || one.held + size > one.capacity) return EP_STATUS_OUT_OF_DEVICE_MEMORY;
    void* pointer = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    *out = new ep_memory{pointer, size};
    one.held += size;
    ++one.blocks;
    return EP_STATUS_OK;
  }

  static void free(ep_device*, ep_memory* memory) {
    Provider& one = provider();
    one.held -= memory->size;
    --one.blocks;
    std::free(memory->pointer);
    delete memory;
  }

  static ep_status map(ep_device*, ep_memory* memory, void** out, ep_error**) {
    *out = memory->pointer;
    return EP_STATUS_OK;
  }

  loader::OpenDevice opened_;
};

}  // namespace tenon::memory
