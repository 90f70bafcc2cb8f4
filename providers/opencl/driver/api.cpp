#include "providers/opencl/driver/api.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace tenon::provider::opencl {

std::string Api::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
#define TENON_OPENCL_LOAD(name)                                  \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, #name)); \
  if (name == nullptr) return fmt::format("{} has no symbol {}", library, #name);
  TENON_OPENCL_FUNCTIONS(TENON_OPENCL_LOAD)
#undef TENON_OPENCL_LOAD
  return {};
}

}  // namespace tenon::provider::opencl
