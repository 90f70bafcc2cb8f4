// Storage: the memory that tensors share, and the instructions that use it. Internal to the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "core/device/block.h"
#include "core/device/ticket_list.h"
#include "core/vm/shared_storage.h"
#include "primitives/status/status.h"

namespace tenon {

class Layout;
struct DeviceState;
struct OpaqueValues;

// Has two counts. `tensors`: handles that can access the data; at zero the block returns to the allocator, with the
// tickets that still use it, in the order of the program. `references`: the users of this object (all tensors together
// count one, each VM slot counts one); at zero the object is freed.
struct Storage {
  std::atomic<int32_t> tensors{1};
  std::atomic<int32_t> references{1};
  DeviceState* device = nullptr;
  memory::Block block;
  uint64_t bytes = 0;
  std::atomic<uint64_t> version{0};                          // number of writes through existing tensors
  std::atomic<const std::string_view*> written_by{nullptr};  // the op of the last write; null: none yet

  // The last instruction of an asynchronous stream that writes here (Ticket::bits), 0 when none is known to be pending.
  // The inline path reads only this word. Written under the VM's submission lock.
  std::atomic<uint64_t> last_write{0};
  // Set while `reads` is not empty, `poison` is set or the storage is unread (unread.h). An inline instruction then
  // takes the slow path. Guarded by the same lock.
  std::atomic<bool> attention{false};
  TicketList reads;  // last read per stream since the last write; guarded by the VM's lock
  Status poison;     // not ok: the last write failed; guarded by the VM's lock

  std::function<void()> deleter;  // for borrowed memory; runs when the last handle is dropped and no ticket uses it

  // The opaque values of a storage, on a device with layouts of its own (opaque.h). Null: there are none.
  std::atomic<OpaqueValues*> opaque{nullptr};

  // True if an inline instruction that reads this storage must ask the VM first.
  bool busy_for_read() const {
    return last_write.load(std::memory_order_acquire) != 0 || attention.load(std::memory_order_acquire);
  }

  void retain_tensor() { tensors.fetch_add(1, std::memory_order_relaxed); }
  // Drops one handle; the last one releases the block.
  void release_tensor() {
    if (tensors.load(std::memory_order_acquire) == 1 || tensors.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      drop_block();
    }
  }
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();

  // Allocates a storage of `bytes` on `device`. The tickets that its block carries become `reads`, so that the first
  // write waits for them.
  static Result<Storage*> make(DeviceState* device, uint64_t bytes);
  // Like make, with a block that begins at a multiple of 256 bytes, for storages that hold several values (core/plan).
  static Result<Storage*> make_aligned(DeviceState* device, uint64_t bytes);
  // Like make, in a block that the device makes for one value of `layout` in an image pool.
  static Result<Storage*> make_image(DeviceState* device, const Layout& layout, uint64_t bytes);
  // A storage over memory that the application owns. `deleter` runs when the memory is no longer used.
  static Storage* borrow(DeviceState* device, const memory::Block& block, uint64_t bytes,
                         std::function<void()> deleter);
  // A storage of `bytes` without a block, whose contents are only in `opaque`; takes over `opaque`.
  static Storage* make_opaque(DeviceState* device, uint64_t bytes, OpaqueValues* opaque);

 private:
  // Takes over a block with the tickets that it carries.
  void own(const memory::Block& fresh);
  void drop_block();
  [[gnu::cold]] void drop_values();
};

namespace vm {
Result<Storage*> plain_storage(Storage* storage, Use use);
}

inline Result<Storage*> SharedStorage::plain(Use use) const {
  if (storage_->opaque.load(std::memory_order_acquire) == nullptr) [[likely]]
    return storage_;
  return vm::plain_storage(storage_, use);
}
inline uint64_t SharedStorage::bytes() const { return storage_->bytes; }
inline uint64_t SharedStorage::version() const { return storage_->version.load(std::memory_order_relaxed); }
inline void SharedStorage::note_write(const std::string_view& op) const {
  storage_->written_by.store(&op, std::memory_order_relaxed);
  storage_->version.fetch_add(1, std::memory_order_relaxed);
}
inline std::string_view SharedStorage::written_by() const {
  const std::string_view* op = storage_->written_by.load(std::memory_order_relaxed);
  return op == nullptr ? std::string_view() : *op;
}
inline int32_t SharedStorage::tensor_count() const { return storage_->tensors.load(std::memory_order_acquire); }
inline bool SharedStorage::busy_for_read() const { return storage_->busy_for_read(); }
inline void SharedStorage::retain_tensor() const { storage_->retain_tensor(); }
inline void SharedStorage::release_tensor() const { storage_->release_tensor(); }

}  // namespace tenon
