// The CUDA driver as a table of functions, and the meaning of its results.
#pragma once

#include <cuda.h>

#include <string>

#include "ep_api/ep_api.h"
#include "providers/cuda/driver/library.h"

namespace tenon::provider::cuda {

// Driver versions as numbers: 12040 is 12.4. A toolkit of major version CUDA_VERSION / 1000 compiled this provider, so
// the provider runs on every driver of that major version or a later one.
inline constexpr int needed_driver_version = CUDA_VERSION / 1000 * 1000;

// Why the driver is unusable: a sentence and a remedy. Empty if it is usable.
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

// Loads and initialises the driver. On failure, `failure` of the result is set. Touches hardware.
Driver load_driver();

// The ep_status for a failed call of the driver.
ep_status status_of(CUresult result);

// "13.0" for 13000.
std::string version_text(int version);

}  // namespace tenon::provider::cuda
