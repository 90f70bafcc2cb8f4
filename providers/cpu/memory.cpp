#include <sys/mman.h>

#include <cstdlib>
#include <limits>

#include "providers/cpu/device.h"
#include "providers/cpu/pages.h"

namespace tenon::provider::cpu {
namespace {

constexpr uint64_t alignment = 256;

// Maps `size` bytes, a multiple of a huge page, aligned to a huge page. The kernel provides zeroed pages.
char* map_huge(uint64_t size) {
  const uint64_t reserved = size + kHugePage;
  void* place = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(place);
  const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned != start) munmap(place, aligned - start);
  const uint64_t tail = start + reserved - (aligned + size);
  if (tail != 0) munmap(reinterpret_cast<void*>(aligned + size), tail);
  pages().choose(reinterpret_cast<char*>(aligned), size);
  return reinterpret_cast<char*>(aligned);
}

void release_block(char* address, uint64_t mapped) {
  if (mapped == 0) return std::free(address);
  pages().forget(address, mapped);
  munmap(address, mapped);
}

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  const ep_host* host = device->host;
  if (pool != 0) return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "cpu has one pool; there is no pool %u.", pool);
  char* address = nullptr;
  uint64_t mapped = 0;
  if (size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - 2 * kHugePage) {
    if (size >= kHugePage) {
      mapped = (size + kHugePage - 1) / kHugePage * kHugePage;
      address = map_huge(mapped);
    } else {
      address = static_cast<char*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
    }
  }
  if (address == nullptr) {
    return fail(host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "The system has no block of %llu bytes.",
                static_cast<unsigned long long>(size));
  }
  try {
    *out_memory = make<ep_memory>(host, host, address, mapped, false);
  } catch (...) {
    release_block(address, mapped);
    throw;
  }
  return EP_STATUS_OK;
}

void memory_free(ep_device*, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  if (!memory->imported) release_block(memory->address, memory->mapped);
  destroy(memory);
}

ep_status memory_map(ep_device*, ep_memory* memory, void** out_pointer, ep_error**) {
  *out_pointer = memory->address;
  return EP_STATUS_OK;
}

ep_status memory_import_host(ep_device* device, void* pointer, uint64_t, ep_memory** out_memory, ep_error**) {
  *out_memory = make<ep_memory>(device->host, device->host, static_cast<char*>(pointer), uint64_t{0}, true);
  return EP_STATUS_OK;
}

ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out_handle, ep_error**) {
  *out_handle = reinterpret_cast<uint64_t>(memory->address);
  return EP_STATUS_OK;
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_map = entry<memory_map>;
  ops->memory_import_host = entry<memory_import_host>;
  ops->memory_native_handle = entry<memory_native_handle>;
}

}  // namespace tenon::provider::cpu
