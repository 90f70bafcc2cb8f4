// Tuning of the kernels that programs of this process have launched: `tenon tune`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/export.h"

namespace tenon::codegen {

// What tuning did for a kernel.
struct TunedKernel {
  std::string name, ops, bucket;  // "fused_6", "square mean add rsqrt mul mul", "n <= 8192"
  std::vector<int64_t> sizes;     // its parameters at the launch
  std::string tiles;              // "unroll 2"; "default": nothing is clearly better
  double default_us = 0, best_us = 0;
  uint64_t tried = 0;   // candidates
  bool kept = false;    // for later runs
  std::string why_not;  // it was not tuned
};

struct Tuning {
  double seconds = 0;  // of launches, for each kernel; 0: what TENON_TUNE=on takes
  // Called before each kernel, and once at the end.
  std::function<void(uint64_t done, uint64_t total, const std::string& name)> progress;
};

// Tunes each kernel that `device` has for a program, for the sizes of its latest preparation, and keeps what is found.
// Programs keep the kernels that they have. The setting TENON_TUNE was not off when they were prepared. Errors:
// cancelled; those of a device that is lost.
TENON_API std::vector<TunedKernel> tune_kernels(DeviceState* device, const Tuning& tuning);

// The file in which what is found for `device` is kept; empty: nowhere.
TENON_API std::string tuning_file(DeviceState* device);

}  // namespace tenon::codegen
