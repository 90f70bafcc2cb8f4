#include "providers/cuda/driver/library.h"

#include <fmt/core.h>

#include <dlfcn.h>

namespace tenon::provider::cuda {

Library Library::open(std::span<const char* const> names) {
  Library library;
  for (const char* name : names) {
    library.handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library.handle_ != nullptr) {
      library.name_ = name;
      library.failure_.clear();
      return library;
    }
    const char* text = dlerror();
    const std::string why = text != nullptr ? text : "unknown error";
    // If the file is absent, the loader's message begins with the name of the file.
    const bool absent = why.find(fmt::format("{}: cannot open shared object file", name)) == 0;
    if (!absent) library.found_broken_ = true;
    if (!library.failure_.empty()) library.failure_ += "; ";
    library.failure_ += why.find(name) == std::string::npos ? fmt::format("{}: {}", name, why) : why;
  }
  return library;
}

void* Library::symbol(const char* name) const { return handle_ != nullptr ? dlsym(handle_, name) : nullptr; }

}  // namespace tenon::provider::cuda
