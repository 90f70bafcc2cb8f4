// Libraries: lists the shared libraries that the process has loaded, and keeps them loaded. The Vulkan loader unloads
// drivers with the last instance, and loads them again for the next one. NVIDIA's driver 580 fails to make an instance
// when it is loaded for the thirtieth time in one process (VK_ERROR_INCOMPATIBLE_DRIVER). Drivers that stay loaded are
// loaded only once.
#pragma once

#include <set>
#include <string>

namespace tenon::provider::vulkan {

// The paths of the loaded libraries.
std::set<std::string> loaded_libraries();

// Keeps each library that is loaded now and is not in `before` until the process ends.
void keep_libraries_since(const std::set<std::string>& before);

}  // namespace tenon::provider::vulkan
