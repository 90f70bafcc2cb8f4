#include "providers/nccl/library.h"

#include <fmt/core.h>

#include <dlfcn.h>

#include <iterator>

namespace tenon::provider::nccl {
namespace {

constexpr const char* nccl_library = "libnccl.so.2";
constexpr const char* cuda_library = "libcuda.so.1";

// Both libraries stay loaded, because their threads may outlive the plug-in.
void* open(const char* library) { return dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

// NCCL encodes 2.8.4 as 2804 and 2.14.3 as 21403.
std::string version_text(int version) {
  if (version < 10000) return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

// Returns an empty string, or the reason of the failure.
std::string Libraries::load_functions() {
  void* const nccl = open(nccl_library);
  if (nccl == nullptr) {
    remedy = "Install NCCL 2.14 or newer (libnccl2, or nvidia-nccl-cu13 with its folder in LD_LIBRARY_PATH).";
    return fmt::format("There is no NCCL: {}.", dlerror());
  }
  void* const cuda = open(cuda_library);
  if (cuda == nullptr) {
    remedy = "Install the driver of the GPU.";
    return fmt::format("There is no CUDA driver: {}.", dlerror());
  }
#define NCCL_FUNCTION(member, symbol, parameters)                   \
  member = reinterpret_cast<decltype(member)>(dlsym(nccl, symbol)); \
  if (member == nullptr) return fmt::format("{} has no function {}: it is too old.", nccl_library, symbol);
#define CUDA_FUNCTION(member, symbol, parameters)                   \
  member = reinterpret_cast<decltype(member)>(dlsym(cuda, symbol)); \
  if (member == nullptr) return fmt::format("{} has no function {}: it is too old.", cuda_library, symbol);
#include "providers/nccl/functions.def"
#undef NCCL_FUNCTION
#undef CUDA_FUNCTION
  int version = 0;
  if (get_version(&version) != success) return fmt::format("{} does not report its version.", nccl_library);
  name = "NCCL " + version_text(version);
  if (version >= oldest_version) return {};
  remedy = "Install NCCL 2.14 or newer.";
  return fmt::format("{} is too old: 2.14 is needed.", name);
}

void Libraries::load() {
  if (!name.empty() || !why_not.empty()) return;
  why_not = load_functions();
  if (name.empty()) name = "NCCL";
}

std::string Libraries::text_of(Result result) {
  constexpr const char* names[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                   "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                   "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
  if (result >= 0 && result < static_cast<Result>(std::size(names))) return names[result];
  return fmt::format("result {} of NCCL", result);
}

std::string Libraries::cuda_text_of(CudaResult result) const {
  const char* text = nullptr;
  if (error_name(result, &text) == cuda_success && text != nullptr) return text;
  return fmt::format("result {} of CUDA", result);
}

}  // namespace tenon::provider::nccl
