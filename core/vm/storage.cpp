#include "core/vm/storage.h"

#include "core/device/device_state.h"
#include "core/device/free_list.h"
#include "core/device/process.h"
#include "core/vm/opaque.h"
#include "core/vm/rules.h"
#include "core/vm/vm.h"

namespace tenon {
namespace {

using Storages = memory::FreeList<Storage>;

}  // namespace

Result<Storage*> Storage::make(DeviceState* device, uint64_t bytes) {
  const uint64_t wanted = bytes == 0 ? 1 : bytes;
  Storage* storage = Storages::make();
  storage->device = device;
  storage->bytes = bytes;
  if (device->allocator->take_at_hand(wanted, &storage->block)) [[likely]]
    return storage;
  const Result<memory::Block> block = device->allocator->allocate(wanted, &storage->reads);
  if (!block.ok()) {
    Storages::destroy(storage);
    return block.status();
  }
  storage->own(block.value());
  return storage;
}

Result<Storage*> Storage::make_aligned(DeviceState* device, uint64_t bytes) {
  Storage* storage = Storages::make();
  storage->device = device;
  storage->bytes = bytes;
  const Result<memory::Block> block = device->allocator->allocate_aligned(bytes == 0 ? 1 : bytes, &storage->reads);
  if (!block.ok()) {
    Storages::destroy(storage);
    return block.status();
  }
  storage->own(block.value());
  return storage;
}

Result<Storage*> Storage::make_image(DeviceState* device, const Layout& layout, uint64_t bytes) {
  Storage* storage = Storages::make();
  storage->device = device;
  storage->bytes = bytes;
  const Result<memory::Block> block = device->allocator->allocate_image(layout, bytes, &storage->reads);
  if (!block.ok()) {
    Storages::destroy(storage);
    return block.status();
  }
  storage->own(block.value());
  return storage;
}

// The tickets count as reads of the new storage, so its first write waits for them.
void Storage::own(const memory::Block& fresh) {
  block = fresh;
  if (!vm::holds(vm::kWaitBeforeReuse)) reads.clear();
  attention.store(!reads.empty(), std::memory_order_relaxed);
}

Storage* Storage::borrow(DeviceState* device, const memory::Block& block, uint64_t bytes,
                         std::function<void()> deleter) {
  Storage* storage = Storages::make();
  storage->device = device;
  storage->block = block;
  storage->bytes = bytes;
  storage->deleter = std::move(deleter);
  return storage;
}

Storage* Storage::make_opaque(DeviceState* device, uint64_t bytes, OpaqueValues* opaque) {
  Storage* storage = Storages::make();
  storage->device = device;
  storage->bytes = bytes;
  storage->opaque.store(opaque, std::memory_order_release);
  return storage;
}

void Storage::drop_block() {
  if (process::forked()) return;
  if (opaque.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return drop_values();
  if (!deleter && !process::ended()) {
    if (busy_for_read()) [[unlikely]] {
      TicketList pending;
      vm::pending_uses(this, &pending);
      device->allocator->release(block, pending);
    } else {
      device->allocator->release(block, {});
    }
  }
  release();
}

void Storage::drop_values() {
  delete opaque.exchange(nullptr, std::memory_order_acquire);
  block.memory == nullptr ? release() : drop_block();  // a storage without a block is opaque
}

void Storage::release() {
  if (references.load(std::memory_order_acquire) != 1 && references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (deleter) vm::run_deleter(std::move(deleter));
  Storages::destroy(this);
}

}  // namespace tenon
