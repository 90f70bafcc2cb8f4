// Tuning: finds the best tiles of a kernel for a device by timing candidates there, and stores them for later runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/tune/search.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

// A kernel without loops, the name of one of its variants, and the sizes to time.
struct TuneRequest {
  DeviceState* device = nullptr;
  const Dialect* dialect = nullptr;
  const Kernel* kernel = nullptr;
  std::string variant;
  std::vector<int64_t> parameters;
  double seconds = 0;  // time for launches; 0: half a second on a CPU, less elsewhere
  uint64_t most_bytes = UINT64_MAX;
  std::function<Status()> wait;  // called before each launch; an error ends the search
};

// Times candidates and stores the result in the data base. Errors: those of search; unsupported if the kernel cannot be
// launched on its own; cancelled.
Result<Found> tune(const TuneRequest& request);

// True if the data base has a line for this kernel and variant.
bool is_tuned(const DeviceState* device, const Dialect& dialect, const Kernel& kernel, const std::string& variant);

// The tiles that the data base has for `kernel`, for make_artifact. All arguments must outlive the result.
TilesOf kept_tiles(const DeviceState* device, const Dialect& dialect, const Kernel& kernel);

// Returns when the process and `device` have been idle for a moment. Errors: cancelled.
Status wait_until_spare(const DeviceState* device);

}  // namespace tenon::codegen
