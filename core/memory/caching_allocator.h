// CachingAllocator: the host's caching allocator over one device's blocks (README.md).
//
// Small blocks (up to 32 KiB) come from per-thread size-class lists; larger ones from a coalescing best-fit heap under
// a mutex, at most 12.5 % waste.
#pragma once

#include <memory>

#include "core/device/allocator.h"
#include "loader/loader.h"

namespace tenon::memory {

// The allocator of `device`, bounded by TENON_MEMORY_LIMIT.
std::unique_ptr<Allocator> make_allocator(loader::OpenDevice* device);

}  // namespace tenon::memory
