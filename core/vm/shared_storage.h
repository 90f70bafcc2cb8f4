// SharedStorage: a tensor's handle to its storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "primitives/status/status.h"

namespace tenon {

struct Storage;

// The intended use of the bytes of a storage. overwrite: write all of them and read none.
enum class Use : uint8_t { read, write, overwrite };

// A storage as code outside the VM sees it: everything except its bytes. Only plain() returns these, in a storage for
// instructions; it converts opaque values first. It owns nothing; the tensor does. storage.h defines its functions.
class SharedStorage {
 public:
  SharedStorage(Storage* storage = nullptr) : storage_(storage) {}

  // The storage with the plain bytes. A `use` that writes drops the opaque values. The tensor keeps the storage alive.
  // Errors: those of an allocation and of a launch.
  Result<Storage*> plain(Use use) const;
  // Like plain(), for a device that is known to have no layouts of its own.
  Storage* at_hand() const { return storage_; }

  uint64_t bytes() const;
  // The number of writes through a tensor since it was made.
  uint64_t version() const;
  // Counts a write by `op`, a static name.
  void note_write(const std::string_view& op) const;
  // The op of the last write; empty: none.
  std::string_view written_by() const;
  // The number of tensors that can access the bytes.
  int32_t tensor_count() const;
  bool busy_for_read() const;
  void retain_tensor() const;
  void release_tensor() const;
  friend bool operator==(SharedStorage, SharedStorage) = default;

 private:
  friend class OpaqueAccess;
  Storage* storage_;
};

}  // namespace tenon
