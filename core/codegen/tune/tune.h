// Tuning: which tiles a kernel gets on a device, found out by timing candidates there and kept for later runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/tune/search.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

// A kernel without loops, one of its variants by name, and the sizes to time.
struct TuneRequest {
  DeviceState* device = nullptr;
  const Dialect* dialect = nullptr;
  const Kernel* kernel = nullptr;
  std::string variant;
  std::vector<int64_t> parameters;
  double seconds = 0;  // of launches; 0: half a second on a CPU, less than that elsewhere
  uint64_t most_bytes = UINT64_MAX;
  std::function<Status()> wait;  // called before each launch; an error ends the search
};

// Times candidates, and keeps what was found in the data base. Errors: those of search, and of a kernel that cannot be
// launched on its own; cancelled.
Result<Found> tune(const TuneRequest& request);

// Whether the data base has a line for it.
bool is_tuned(const DeviceState* device, const Dialect& dialect, const Kernel& kernel, const std::string& variant);

// What the data base has for `kernel`, for make_artifact. Everything outlives it.
TilesOf kept_tiles(const DeviceState* device, const Dialect& dialect, const Kernel& kernel);

// Returns when the process and `device` have had nothing to do for a moment. Errors: cancelled.
Status wait_until_spare(const DeviceState* device);

}  // namespace tenon::codegen
