// SharedStorage: what a tensor holds of its storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "primitives/status/status.h"

namespace tenon {

struct Storage;

// What somebody is about to do with the bytes of a storage; overwrite: write all of them and read none.
enum class Use : uint8_t { read, write, overwrite };

// The storage of a tensor, as all code but the VM's sees it: everything but its bytes. Only plain() gives these, in a
// storage for instructions, and converts them first where they lie opaque. It owns nothing; the tensor does. storage.h
// defines its functions.
class SharedStorage {
 public:
  SharedStorage(Storage* storage = nullptr) : storage_(storage) {}

  // The storage that holds the bytes plain. A `use` that writes forgets the opaque values. The tensor keeps it alive.
  // Errors: those of an allocation and of a launch.
  Result<Storage*> plain(Use use) const;
  // The same where nothing can be opaque: the device is known to have no layouts of its own.
  Storage* at_hand() const { return storage_; }

  uint64_t bytes() const;
  // How often a tensor over it was written after it was made.
  uint64_t version() const;
  // Counts a write by `op`, a name that lives as long as the process.
  void note_write(const std::string_view& op) const;
  // The op of the last write; empty: nobody wrote.
  std::string_view written_by() const;
  // How many tensors can reach the bytes.
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
