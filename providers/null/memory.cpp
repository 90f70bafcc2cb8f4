#include <cstdlib>
#include <limits>

#include "providers/null/device.h"

namespace tenon::provider::null {
namespace {

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  const ep_host* host = device->host;
  if (pool != 0) return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "null has one pool; there is no pool %u.", pool);
  char* address = nullptr;
  if (size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - alignment) {
    address = static_cast<char*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
  }
  if (address == nullptr) {
    return fail(host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "The system has no block of %llu bytes.",
                static_cast<unsigned long long>(size));
  }
  try {
    *out_memory = make<ep_memory>(host, host, address);
  } catch (...) {
    std::free(address);
    throw;
  }
  return EP_STATUS_OK;
}

void memory_free(ep_device*, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  std::free(memory->address);
  destroy(memory);
}

ep_status memory_map(ep_device*, ep_memory* memory, void** out_pointer, ep_error**) {
  *out_pointer = memory->address;
  return EP_STATUS_OK;
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_map = entry<memory_map>;
}

}  // namespace tenon::provider::null
