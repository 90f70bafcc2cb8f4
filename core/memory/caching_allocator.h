// CachingAllocator: the host's caching allocator for the blocks of one device (README.md).
//
// Small blocks (up to 32 KiB) come from size-class lists per thread. Larger ones come from a coalescing best-fit heap
// under a mutex, with at most 12.5 % waste.
#pragma once

#include <memory>

#include "core/device/allocator.h"
#include "loader/loader.h"

namespace tenon::memory {

// The allocator of `device`, limited by TENON_MEMORY_LIMIT.
std::unique_ptr<Allocator> make_allocator(loader::OpenDevice* device);

}  // namespace tenon::memory
