// Timed launches of a kernel on its device: buffers with generated numbers, and trials of candidates on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/tune/search.h"
#include "core/primitive/compiled_module.h"
#include "core/vm/opaque.h"

namespace tenon::codegen {

// Threads: one at a time.
class Launches {
 public:
  // `kernel` has no loops. `wait` may be empty; it is called before each launch and returns when the launch may begin.
  // Errors: out_of_device_memory; those of uploads; unsupported if the kernel's buffers take more than `most_bytes`.
  static Result<std::unique_ptr<Launches>> make(DeviceState* device, const ep_dialect_info& dialect,
                                                const Kernel& kernel, std::vector<int64_t> parameters,
                                                uint64_t most_bytes, std::function<Status()> wait);

  // Compiles `variant` and runs it once. The results of the first trial are the reference: a later trial returns null
  // if its results differ in any bit. The Launches must outlive the trial. Errors: those of the compiler and of
  // launches.
  Result<std::unique_ptr<Trial>> trial(const std::string& name, const Variant& variant);

 private:
  class LaunchTrial;
  struct Memory {
    StorageOwner storage;
    uint64_t bytes = 0;
    bool output = false;
    std::vector<std::byte> first;  // for an output: the bytes that the first trial wrote
  };

  Launches(DeviceState* device, const ep_dialect_info& dialect, std::vector<int64_t> parameters,
           std::function<Status()> wait)
      : device_(device), dialect_(dialect), parameters_(std::move(parameters)), wait_(std::move(wait)) {}
  Status add(const Kernel& kernel, const Buffer& buffer, bool positions, uint64_t* room);
  // True if the results equal those of the first trial.
  Result<bool> same_results();
  Status poison_outputs();

  DeviceState* const device_;
  const ep_dialect_info dialect_;
  const std::vector<int64_t> parameters_;
  const std::function<Status()> wait_;
  std::vector<Memory> memory_;  // indexed by buffer
  size_t repeats_ = 0;          // launches per sample; 0: not known yet
  bool has_first_ = false;
};

}  // namespace tenon::codegen
