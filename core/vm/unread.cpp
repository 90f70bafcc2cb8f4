#include "core/vm/unread.h"

#include <memory>

#include "core/device/device_state.h"
#include "core/vm/inline.h"

namespace tenon::vm {
namespace {

// A storage and its opaque values, which hold the source of an unread storage.
struct Unread {
  explicit Unread(Storage* of) : storage(of), values(of->opaque.load(std::memory_order_acquire)) {}
  bool has_source() const { return values != nullptr && values->source; }
  bool waits() const { return storage->block.memory == nullptr; }  // call under the lock

  Storage* storage;
  OpaqueValues* values;
};

// A block with the bytes of `storage`.
Result<memory::Block> read_block(const Storage& storage, const Source& source) {
  memory::Allocator& allocator = *storage.device->allocator;
  TicketList uses;
  TENON_ASSIGN_OR_RETURN(const memory::Block block, allocator.allocate(storage.bytes, &uses));
  Status status = wait_all(uses);
  if (status.ok()) status = source(block.host);
  if (status.ok()) return block;
  allocator.release(block, {});
  return status;
}

}  // namespace

bool may_be_unread(const DeviceState* device) {
  return device->synchronous && device->mapped && !device->layouts && !device->exclusive;
}

Storage* unread_storage(DeviceState* device, uint64_t bytes, Source source) {
  auto values = std::make_unique<OpaqueValues>();
  values->source = std::move(source);
  Storage* made = Storage::make_opaque(device, bytes, values.release());
  made->attention.store(true, std::memory_order_release);
  return made;
}

bool is_unread(SharedStorage shared) {
  const Unread one(shared.at_hand());
  if (!one.has_source()) return false;
  const std::lock_guard lock(one.values->mutex);
  return one.waits();
}

Result<StorageOwner> read_apart(SharedStorage shared) {
  const Unread one(shared.at_hand());
  if (!one.has_source()) return StorageOwner();
  {
    const std::lock_guard lock(one.values->mutex);
    if (!one.waits()) return StorageOwner();
  }
  TENON_ASSIGN_OR_RETURN(Storage * made, Storage::make(one.storage->device, one.storage->bytes));
  StorageOwner apart(made);
  TENON_RETURN_IF_ERROR(settle(made, true, true));
  TENON_RETURN_IF_ERROR(one.values->source(made->block.host));
  return apart;
}

Status read_here(Storage* storage) {
  const Unread one(storage);
  if (!one.has_source()) return Status();
  const std::lock_guard lock(one.values->mutex);
  if (!one.waits()) return Status();
  TENON_ASSIGN_OR_RETURN(storage->block, read_block(*storage, one.values->source));
  storage->attention.store(false, std::memory_order_release);
  return Status();
}

}  // namespace tenon::vm
