// Opaque values: what storages hold in layouts of their device's own (ep_api.h, "Opaque operands"). Internal to the
// library.
//
// A storage with values is of one of two kinds. A storage that was made with a block is plain; its values are copies
// of its bytes, for primitives that want them so. A storage that was made opaque has no block; its first value is its
// contents until somebody looks at the bytes: then a second storage gets them, which stays. Values and that second
// storage are ordinary storages, so the order of instructions, poison and the end of blocks hold for conversions as for
// everything else.
//
// Threads: every function is thread-safe. Two that convert one storage at once may both do the work.
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
  StorageOwner storage;  // of the bytes in that layout
  uint64_t version = 0;  // of the storage it stands for, when it was made: a later write makes it stale
};

struct OpaqueValues {
  std::mutex mutex;
  std::vector<OpaqueValue> values;
  StorageOwner plain;    // of a storage without a block: where its bytes are, once somebody has looked
  bool exposed = false;  // others may write the bytes at any time, so no value may stand for them
  std::function<Status(void* out)> source;  // of a storage that was made unread (unread.h)
};

namespace vm {

// The layout in which a reader finds `storage` at hand; none if that is plain.
std::optional<Layout> layout_of(SharedStorage storage);

// The value of `storage` in `layout`. It is converted if it is not there, from row-major elements that fill the
// storage, and then kept until somebody writes the storage. `converted`: raised by the bytes that were.
Result<StorageOwner> value_in(SharedStorage storage, const Layout& layout, uint64_t* converted);

// Memory for one value in `layout`, contents undefined.
Result<StorageOwner> make_value(DeviceState* device, const Layout& layout);

// A storage of `bytes` whose contents are `value`: row-major elements in `layout`.
Storage* storage_of(DeviceState* device, uint64_t bytes, const Layout& layout, StorageOwner value);

// The plain storage, for an address that outlives the call: whoever has the address may write at any time.
Result<Storage*> expose(SharedStorage storage);

// Waits as `settle` does until a reader of `storage` may go on, and converts nothing.
Status settle_value(SharedStorage storage);

// Reads the bytes of a storage that was made unread, if nobody has (unread.h).
Status read_here(Storage* storage);

// One conversion, for the execution report, which defines the function (core/interpreter).
struct Conversion {
  const DeviceState* device = nullptr;
  std::string_view layout;  // the device's name for it
  bool to_layout = false;
  std::string_view implementation;
  uint64_t bytes = 0;  // of the plain side
};
void note_conversion(const Conversion& conversion);

}  // namespace vm
}  // namespace tenon
