// Pools of device memory, and access of one device to the memory of another.
#include <mutex>
#include <set>
#include <utility>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/stream.h"

struct CUmemPoolHandle_st {
  CUdevice device;
};

namespace tenon::fakes::cuda {
namespace {

// The granted accesses. A context grants access to plain blocks, a pool to its own blocks.
struct Ways {
  std::mutex mutex;
  std::set<std::pair<CUdevice, CUdevice>> contexts;
  std::set<std::pair<CUdevice, CUmemoryPool>> pools;
};

Ways& ways() {
  static auto* all = new Ways;
  return *all;
}

}  // namespace

bool reaches(CUdevice device, const Owner& owner) {
  if (owner.pinned || owner.device == device) return true;
  Ways& all = ways();
  const std::lock_guard lock(all.mutex);
  return owner.pool != nullptr ? all.pools.contains({device, owner.pool})
                               : all.contexts.contains({device, owner.device});
}

void forget_peers(CUdevice device) {
  Ways& all = ways();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.contexts, [device](const auto& way) { return way.first == device || way.second == device; });
}

}  // namespace tenon::fakes::cuda

using tenon::fakes::cuda::check_range;
using tenon::fakes::cuda::control;
using tenon::fakes::cuda::ways;

FAKE_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  FAKE_ENTER(false);
  *can = control().peers && device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  FAKE_ENTER(true);
  const CUdevice device = tenon::fakes::cuda::current_device();
  if (flags != 0 || peer->users == 0 || peer->device == device) return CUDA_ERROR_INVALID_CONTEXT;
  if (!control().peers) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  auto& all = ways();
  const std::lock_guard lock(all.mutex);
  const bool added = all.contexts.insert({device, peer->device}).second;
  return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

FAKE_API CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wanted) {
  FAKE_ENTER(false);
  if (!control().pools || !control().pools_work) return CUDA_ERROR_NOT_SUPPORTED;
  if (wanted->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      wanted->location.id >= control().devices) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pool = new CUmemPoolHandle_st{wanted->location.id};
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  auto& all = ways();
  {
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.pools, [pool](const auto& way) { return way.second == pool; });
  }
  delete pool;
  --control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) {
  FAKE_ENTER(false);
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  FAKE_ENTER(false);
  auto& all = ways();
  const std::lock_guard lock(all.mutex);
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = map[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        !control().peers) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    all.pools.insert({location.id, pool});
  }
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  return tenon::fakes::cuda::allocate_block(size, {pool->device, pool, false}, address);
}

// Without access, a real driver would silently copy through host memory. Here that is a violation.
FAKE_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                                    size_t size, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  if (dst_context->users == 0 || src_context->users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  check_range("the destination of a copy between devices", dst, size, dst_context->device);
  check_range("the source of a copy between devices", src, size, dst_context->device);
  if (tenon::fakes::cuda::owner_of(src).device != src_context->device) {
    control().violate("the source of a copy between devices is not the source's");
  }
  control().peer_copies.fetch_add(1);
  return tenon::fakes::cuda::enqueue_copy(stream, dst, src, size);
}
