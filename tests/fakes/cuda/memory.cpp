#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/fakes/cuda/fake.h"

namespace tenon::fakes::cuda {
namespace {

struct Block {
  uint64_t size;
  Owner owner;
  bool external = false;  // not allocated here
};

struct Blocks {
  std::mutex mutex;
  std::map<CUdeviceptr, Block> by_address;
};

Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}

// Finds the block that contains `address`, or the end. The caller holds the lock.
std::map<CUdeviceptr, Block>::iterator block_of(Blocks& all, CUdeviceptr address) {
  auto next = all.by_address.upper_bound(address);
  if (next == all.by_address.begin()) return all.by_address.end();
  --next;
  return address < next->first + next->second.size ? next : all.by_address.end();
}

}  // namespace

uint64_t free_memory() {
  const auto used = static_cast<uint64_t>(control().allocated.load());
  const uint64_t total = control().memory.load();
  return used < total ? total - used : 0;
}

CUresult allocate_block(uint64_t size, const Owner& owner, CUdeviceptr* out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  if (!owner.pinned && size > free_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* place = std::aligned_alloc(512, (size + 511) / 512 * 512);
  if (place == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(place, 0xa5, size);
  *out = reinterpret_cast<CUdeviceptr>(place);
  all.by_address[*out] = {size, owner, false};
  (owner.pinned ? control().pinned : control().allocated) += static_cast<int64_t>(size);
  return CUDA_SUCCESS;
}

CUresult free_block(CUdeviceptr address, bool pinned) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_address.find(address);
  if (found == all.by_address.end() || found->second.owner.pinned != pinned) {
    control().violate("something is freed that is not a block of that kind");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!found->second.external) {
    (pinned ? control().pinned : control().allocated) -= static_cast<int64_t>(found->second.size);
    std::free(reinterpret_cast<void*>(address));
  }
  all.by_address.erase(found);
  return CUDA_SUCCESS;
}

void map_block(CUdeviceptr address, uint64_t size, const Owner& owner) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  all.by_address[address] = {size, owner, true};
}

std::optional<Range> range_of(CUdeviceptr address) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = block_of(all, address);
  if (found == all.by_address.end()) return std::nullopt;
  return Range{found->first, found->second.size, found->second.owner};
}

bool is_pinned_block(CUdeviceptr address) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = block_of(all, address);
  return found != all.by_address.end() && found->second.owner.pinned;
}

Owner owner_of(CUdeviceptr address) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = block_of(all, address);
  if (found != all.by_address.end()) return found->second.owner;
  control().violate("an address is in no block");
  return {};
}

void check_range(const char* who, CUdeviceptr address, uint64_t size, CUdevice device) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto found = block_of(all, address);
  if (found != all.by_address.end() && address + size <= found->first + found->second.size) {
    if (reaches(device, found->second.owner)) return;
    return control().violate(fmt::format("{} is memory of a device that device {} has no access to", who, device));
  }
  control().violate(fmt::format("{} leaves its block, or has none: {} bytes", who, size));
}

}  // namespace tenon::fakes::cuda
