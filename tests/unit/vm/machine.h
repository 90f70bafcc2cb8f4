// Machine: two devices of some provider with three streams each, and the operations of random programs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/vm/storage.h"
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
  virtual ~Machine() = default;

  // Opens the devices that are not open yet. May be called again after an error.
  Status open();
  DeviceState* device(int index) const { return devices_[index]; }
  // The bytes of persistent scratch that streams hold.
  uint64_t scratch_bytes(int device) const;

  virtual Result<StorageHandle> allocate(int device, uint64_t words);
  Status upload(Storage* storage, uint64_t first, const std::vector<uint32_t>& words) const;
  Result<std::vector<uint32_t>> download(Storage* storage) const;

  struct View {
    Storage* storage;
    uint64_t first;  // index of a word
  };
  // dst = 31*a + b + tag. `how` is one of fakes::kMix...; `whole` means that dst covers its storage and the instruction
  // reads none of it.
  virtual Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                     bool whole) = 0;
  Status copy(View dst, View src, int64_t words, bool whole) const;

  // Runs `function` on the host with `words` words of `at`.
  Status access(View at, int64_t words, bool reads, bool writes, std::function<void(uint32_t*)> function) const;

  // Moves the contents of `buffer` elsewhere before instruction `index` of a program uses it.
  virtual Status stir(StorageHandle&, size_t) { return Status(); }

  // Waits for both devices and drops their errors. Returns the number of errors.
  uint64_t settle() const;
  // Returns the provider's complaint about the host's calls, or an empty string.
  virtual std::string violation() const { return {}; }

 protected:
  Machine(std::string first, std::string second) : spellings_{std::move(first), std::move(second)} {}

  // Marks the devices as closed. open() opens them again.
  void forget();
  static Result<Primitive*> make_primitive(DeviceState* device, const ep_primitive_desc& desc);

  struct Launch {
    Primitive* primitive;
    int stream;
    View dst, a, b;  // without a storage: a scalar
    bool whole;
    ep_scalar scalars[2];
    uint64_t workspace = 0;
  };
  static Status launch(const Launch& launch);

 private:
  std::string spellings_[kDevices];
  DeviceState* devices_[kDevices]{};
  int streams_[kDevices]{};
};

}  // namespace tenon::testing
