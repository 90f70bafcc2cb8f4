// The SPIR-V modules, compiled from shaders/ when this is built; named <shader>_<variant>, as the build lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::provider::vulkan {

// The words of module `name`, empty if there is none.
std::span<const uint32_t> module_words(std::string_view name);

}  // namespace tenon::provider::vulkan
