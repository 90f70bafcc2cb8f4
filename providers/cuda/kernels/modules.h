// Modules: the embedded device code, one fat binary per family of kernels, with code for every architecture of the
// build. A family is loaded into the device when its first kernel is requested.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace tenon::provider::cuda {

struct Driver;

enum class Family : size_t {
#define TENON_FAMILY(value, name, code) value,
#include "providers/cuda/kernels/families.def"
#undef TENON_FAMILY
};
inline constexpr size_t family_count = 0
#define TENON_FAMILY(value, name, code) +1
#include "providers/cuda/kernels/families.def"
#undef TENON_FAMILY
    ;

// The embedded code of a family.
const void* family_code(Family family);
const char* family_name(Family family);

class Modules {
 public:
  // Finds kernel `name` of `family`. The device's context is current. The function is valid until release(). Threads:
  // any.
  CUresult find(const Driver& driver, Family family, const char* name, CUfunction* out);
  void release(const Driver& driver);

 private:
  std::mutex mutex_;
  std::array<CUmodule, family_count> loaded_{};
};

}  // namespace tenon::provider::cuda
