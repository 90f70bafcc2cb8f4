// The SPIR-V modules. The build compiles them from shaders/ and names them <shader>_<variant>.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::provider::vulkan {

// The words of module `name`; empty if no module has that name.
std::span<const uint32_t> module_words(std::string_view name);

}  // namespace tenon::provider::vulkan
