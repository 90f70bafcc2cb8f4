// Unread storages: the bytes lie elsewhere, such as in a file, until somebody needs them. Internal to the library.
//
// An unread storage has no block. The first instruction, or the first address, that needs its bytes allocates a block
// and reads them into it, and there they stay. Whoever needs them once, as a constant that is packed, reads them apart.
//
// Threads: every function is thread-safe. Two that need the bytes of one storage at once read them once.
#pragma once

#include <functional>

#include "core/vm/opaque.h"

namespace tenon::vm {

// Writes the bytes of one storage to `out`. Any thread may call it, any number of times, and it calls nothing of Tenon.
using Source = std::function<Status(void* out)>;

// Whether storages of `device` may be unread: it is synchronous, the host reaches its memory, and it has no layouts.
bool may_be_unread(const DeviceState* device);

// An unread storage of `bytes` on such a device.
Storage* unread_storage(DeviceState* device, uint64_t bytes, Source source);

// True if nobody has read `storage` yet.
bool is_unread(SharedStorage storage);

// The bytes of `storage` in a storage of its own, if nobody has read `storage` yet: `storage` then stays unread. Else
// nothing. Errors: those of the source and of the allocation.
Result<StorageOwner> read_apart(SharedStorage storage);

}  // namespace tenon::vm
