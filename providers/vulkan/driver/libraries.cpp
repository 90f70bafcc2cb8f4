#include "providers/vulkan/driver/libraries.h"

#include <dlfcn.h>
#include <link.h>

namespace tenon::provider::vulkan {

std::set<std::string> loaded_libraries() {
  std::set<std::string> paths;
  const auto note = [](dl_phdr_info* info, size_t, void* out) {
    static_cast<std::set<std::string>*>(out)->emplace(info->dlpi_name == nullptr ? "" : info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(note, &paths);
  return paths;
}

void keep_libraries_since(const std::set<std::string>& before) {
  for (const std::string& path : loaded_libraries()) {
    if (path.empty() || before.contains(path)) continue;
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle != nullptr) dlclose(handle);
  }
}

}  // namespace tenon::provider::vulkan
