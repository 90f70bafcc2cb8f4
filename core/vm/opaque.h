// Opaque values: contents of storages in layouts of their device's own (ep_api.h, "Opaque operands"). Internal to the
// library.
//
// A storage with opaque values is of one of two kinds. A storage that was made with a block is plain; its values are
// copies of its bytes, for primitives that take them. A storage that was made opaque has no block; its first value
// holds its contents until the bytes are needed. Then a second storage gets the bytes and keeps them. Values and that
// second storage are ordinary storages, so order of instructions, poison and release of blocks apply to conversions
// too.
//
// Threads: every function is thread-safe. Two threads that convert one storage at the same time may both do the work.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/layout.h"
#include "core/vm/storage.h"

namespace tenon {

// One handle of a storage.
class StorageOwner {
 public:
  StorageOwner() = default;
  explicit StorageOwner(Storage* storage) : storage_(storage) {}  // takes over one handle
  StorageOwner(const StorageOwner& other) : storage_(other.storage_) {
    if (storage_ != nullptr) storage_->retain_tensor();
  }
  StorageOwner(StorageOwner&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StorageOwner& operator=(StorageOwner other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageOwner() {
    if (storage_ != nullptr) storage_->release_tensor();
  }
  Storage* get() const { return storage_; }
  Storage* release() { return std::exchange(storage_, nullptr); }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  Storage* storage_ = nullptr;
};

struct OpaqueValue {
  Layout layout;
  StorageOwner storage;  // the contents in that layout
  uint64_t version = 0;  // the storage's version when the value was made; a later write makes the value stale
};

struct OpaqueValues {
  std::mutex mutex;
  std::vector<OpaqueValue> values;
  StorageOwner plain;                       // for a storage without a block: its bytes, once they were needed
  bool exposed = false;                     // others may write the bytes at any time, so opaque values are not allowed
  std::function<Status(void* out)> source;  // for a storage that was made unread (unread.h)
};

namespace vm {

// The layout in which `storage` can be read without a conversion; nothing if that is the plain one.
std::optional<Layout> layout_of(SharedStorage storage);

// The value of `storage` in `layout`. If there is none, it is converted from row-major elements that fill the storage,
// and kept until the next write. Adds the converted bytes to `converted`.
Result<StorageOwner> value_in(SharedStorage storage, const Layout& layout, uint64_t* converted);

// Memory for one value in `layout`, contents undefined.
Result<StorageOwner> make_value(DeviceState* device, const Layout& layout);

// A storage of `bytes` whose contents are `value`: row-major elements in `layout`.
Storage* storage_of(DeviceState* device, uint64_t bytes, const Layout& layout, StorageOwner value);

// The plain storage, for an address that outlives the call: code that holds the address may write at any time.
Result<Storage*> expose(SharedStorage storage);

// Waits like `settle` until a reader of `storage` may continue, without a conversion.
Status settle_value(SharedStorage storage);

// Reads the bytes of an unread storage, if that has not happened yet (unread.h).
Status read_here(Storage* storage);

// Reports one conversion to the execution report, which defines the function (core/interpreter).
struct Conversion {
  const DeviceState* device = nullptr;
  std::string_view layout;  // the device's name of the layout
  bool to_layout = false;
  std::string_view implementation;
  uint64_t bytes = 0;  // bytes of the plain form
};
void note_conversion(const Conversion& conversion);

}  // namespace vm
}  // namespace tenon
