// The CUDA driver as a table of functions, and what its answers mean.
#pragma once

#include <cuda.h>

#include <string>

#include "ep_api/ep_api.h"
#include "providers/cuda/driver/library.h"

namespace tenon::provider::cuda {

// Versions as the driver counts them: 12040 is 12.4. The code of this provider was compiled by a toolkit of major
// version CUDA_VERSION / 1000, and runs on every driver of that major version or a later one.
inline constexpr int needed_driver_version = CUDA_VERSION / 1000 * 1000;

// Why the driver cannot be used: nothing, or one sentence, and what to do about it.
struct DriverFailure {
  ep_status status = EP_STATUS_OK;
  std::string sentence;
  std::string remedy;
};

struct Driver {
  Library library;
  int version = 0;
  int device_count = 0;
  DriverFailure failure;

  decltype(&cuInit) init = nullptr;
  decltype(&cuDriverGetVersion) driver_get_version = nullptr;
#define TENON_DRIVER(member, symbol) decltype(&symbol) member = nullptr;
#include "providers/cuda/driver/functions.def"
#undef TENON_DRIVER

  // "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string text_of(CUresult result) const;
};

// Loads and initialises the driver: `failure` of the result says if that did not work. Touches hardware.
Driver load_driver();

// What a failed call of the driver means to the host.
ep_status status_of(CUresult result);

// "13.0" for 13000.
std::string version_text(int version);

}  // namespace tenon::provider::cuda
