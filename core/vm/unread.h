// Unread storages: the bytes stay elsewhere, such as in a file, until they are needed. Internal to the library.
//
// An unread storage has no block. The first instruction, or the first request for an address, that needs its bytes
// allocates a block and reads the bytes into it; they stay there. Code that needs the bytes only once, such as packing
// a constant, reads them separately (read_apart).
//
// Threads: every function is thread-safe. If two threads need the bytes of one storage at once, they are read once.
#pragma once

#include <functional>

#include "core/vm/opaque.h"

namespace tenon::vm {

// Writes the bytes of one storage to `out`. Any thread may call it, any number of times. It must not call Tenon.
using Source = std::function<Status(void* out)>;

// True if storages of `device` may be unread: it is synchronous, the host can access its memory, and it has no layouts
// of its own.
bool may_be_unread(const DeviceState* device);

// An unread storage of `bytes` on such a device.
Storage* unread_storage(DeviceState* device, uint64_t bytes, Source source);

// True if `storage` has not been read yet.
bool is_unread(SharedStorage storage);

// If `storage` is unread, returns its bytes in a separate storage; `storage` stays unread. Else returns nothing.
// Errors: those of the source and of the allocation.
Result<StorageOwner> read_apart(SharedStorage storage);

}  // namespace tenon::vm
