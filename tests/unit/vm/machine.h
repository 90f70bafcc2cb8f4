// Machine: the two asynchronous fakes, opened once per test program, and what tests launch on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/device_state.h"
#include "core/tensor/storage.h"
#include "core/vm/vm.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {

constexpr int kDevices = 2;
constexpr int kStreams = 3;

struct DropStorage {
  void operator()(Storage* storage) const { storage->release_tensor(); }
};
using StorageHandle = std::unique_ptr<Storage, DropStorage>;

class Machine {
 public:
  // Registers the fake and opens both devices at the first call.
  static Machine& get();

  DeviceState* device(int index) const { return devices_[index]; }
  // The kernel of dst = 31*a + b + tag over `words` words, cached; with `scratch` bytes of persistent scratch.
  Kernel* mix(int device, int64_t words, uint64_t scratch = 0);

  // Of persistent scratch, which streams keep.
  uint64_t scratch_bytes(int device) const;

  Result<StorageHandle> allocate(int device, uint64_t words) const;
  Status upload(Storage* storage, uint64_t first, const std::vector<uint32_t>& words) const;
  Result<std::vector<uint32_t>> download(Storage* storage) const;

  struct View {
    Storage* storage;
    uint64_t first;  // word
  };
  // `how` is one of fakes::kMix...; `whole`: dst covers its storage and the instruction reads nothing of it.
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how, bool whole);
  // The same with workspace and scratch of so many bytes.
  struct Extra {
    uint64_t workspace = 0;
    uint64_t scratch = 0;
  };
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how, bool whole,
             Extra extra);
  Status copy(View dst, View src, int64_t words, bool whole) const;

  // Waits for both devices and forgets their errors; returns how many there were.
  uint64_t settle() const;

 private:
  Machine();

  DeviceState* devices_[kDevices]{};
  struct Cached {
    int device;
    int64_t words;
    uint64_t scratch;
    Kernel* kernel;
  };
  std::vector<Cached> kernels_;
};

}  // namespace tenon::testing
