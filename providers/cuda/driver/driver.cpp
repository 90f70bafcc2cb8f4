#include "providers/cuda/driver/driver.h"

#include <fmt/core.h>

#include <array>

namespace tenon::provider::cuda {
namespace {

constexpr std::array driver_names = {"libcuda.so.1"};

std::string install_remedy() {
  return fmt::format("Install an NVIDIA driver for CUDA {} or newer; nvidia-smi shows the one in use.",
                     version_text(needed_driver_version));
}

DriverFailure missing_library(const Library& library) {
  if (library.found_broken()) {
    return {EP_STATUS_NOT_FOUND,
            fmt::format("The library of the NVIDIA driver cannot be loaded: {}.", library.failure()),
            "Install the NVIDIA driver again; what is found first under that name is not its library."};
  }
  return {EP_STATUS_NOT_FOUND, fmt::format("There is no NVIDIA driver here: {}.", library.failure()), install_remedy()};
}

DriverFailure missing_function(const Library& library, const char* symbol) {
  return {EP_STATUS_VERSION,
          fmt::format("The NVIDIA driver's {} has no function {}, which CUDA {} needs.", library.name(), symbol,
                      version_text(needed_driver_version)),
          install_remedy()};
}

DriverFailure too_old(int found) {
  return {EP_STATUS_VERSION,
          fmt::format("The NVIDIA driver is too old: it knows CUDA {}, and {} is needed.", version_text(found),
                      version_text(needed_driver_version)),
          install_remedy()};
}

template <class Function>
bool find(const Library& library, const char* symbol, Function* out) {
  *out = reinterpret_cast<Function>(library.symbol(symbol));
  return *out != nullptr;
}

// Reads the version before the other functions, because an older driver lacks some of them.
DriverFailure load(Driver* driver) {
  const Library& library = driver->library;
  if (!library.loaded()) return missing_library(library);
  if (!find(library, "cuInit", &driver->init)) return missing_function(library, "cuInit");
  if (!find(library, "cuDriverGetVersion", &driver->driver_get_version)) {
    return missing_function(library, "cuDriverGetVersion");
  }
  if (driver->driver_get_version(&driver->version) == CUDA_SUCCESS && driver->version != 0 &&
      driver->version < needed_driver_version) {
    return too_old(driver->version);
  }
#define TENON_DRIVER(member, symbol) \
  if (!find(library, #symbol, &driver->member)) return missing_function(library, #symbol);
#include "providers/cuda/driver/functions.def"
#undef TENON_DRIVER
  CUresult result = driver->init(0);
  if (result == CUDA_SUCCESS) result = driver->device_get_count(&driver->device_count);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NO_DEVICE) return {};
  return {EP_STATUS_NOT_FOUND, fmt::format("The NVIDIA driver does not start: {}.", driver->text_of(result)),
          "Check that nvidia-smi works; after an update of the driver the machine must be started again."};
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string Driver::text_of(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name == nullptr || get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return fmt::format("CUDA error {}", static_cast<int>(result));
  }
  if (get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

Driver load_driver() {
  Driver driver;
  driver.library = Library::open(driver_names);
  driver.failure = load(&driver);
  return driver;
}

ep_status status_of(CUresult result) {
  constexpr int contained = 226;  // CUDA_ERROR_CONTAINED and CUDA_ERROR_TENSOR_MEMORY_LEAK in newer headers
  constexpr int tensor_memory_leak = 721;
  const int number = static_cast<int>(result);
  if (number == contained || number == tensor_memory_leak) return EP_STATUS_DEVICE_LOST;
  switch (result) {
    case CUDA_SUCCESS: return EP_STATUS_OK;
    case CUDA_ERROR_NOT_READY: return EP_STATUS_BUSY;
    case CUDA_ERROR_OUT_OF_MEMORY: return EP_STATUS_OUT_OF_DEVICE_MEMORY;
    case CUDA_ERROR_NOT_INITIALIZED:  // what an open device returns in a child of the process that opened it
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return EP_STATUS_DEVICE_LOST;
    default: return EP_STATUS_INTERNAL;
  }
}

}  // namespace tenon::provider::cuda
