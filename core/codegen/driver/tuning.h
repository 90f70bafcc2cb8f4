// Tunes the kernels that programs of this process have launched: `tenon tune`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/export.h"

namespace tenon::codegen {

// The result of tuning one kernel.
struct TunedKernel {
  std::string name, ops, bucket;  // "fused_6", "square mean add rsqrt mul mul", "n <= 8192"
  std::vector<int64_t> sizes;     // parameters of the launch that was timed
  std::string tiles;              // "unroll 2"; "default" if nothing is clearly better
  double default_us = 0, best_us = 0;
  uint64_t tried = 0;   // number of candidates
  bool kept = false;    // stored for later runs
  std::string why_not;  // the reason if it was not tuned
};

struct Tuning {
  double seconds = 0;  // time for launches, per kernel; 0: as with TENON_TUNE=on
  // Called before each kernel, and once at the end.
  std::function<void(uint64_t done, uint64_t total, const std::string& name)> progress;
};

// Tunes each kernel that programs have prepared on `device`, for the sizes of the latest preparation, and stores the
// results. Existing programs keep their kernels. Only kernels that were prepared while TENON_TUNE was not "off" can be
// tuned. Errors: cancelled; device_lost.
TENON_API std::vector<TunedKernel> tune_kernels(DeviceState* device, const Tuning& tuning);

// The file that stores the results for `device`; empty if none does.
TENON_API std::string tuning_file(DeviceState* device);

}  // namespace tenon::codegen
