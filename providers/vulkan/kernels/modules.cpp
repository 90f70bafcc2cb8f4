#include "providers/vulkan/kernels/modules.h"

#include "vulkan_modules.h"

namespace tenon::provider::vulkan {
namespace {

struct Module {
  std::string_view name;
  std::span<const uint32_t> words;
};

constexpr Module modules[] = {
#define TENON_VULKAN_MODULE(name) {#name, name},
#include "vulkan_modules.def"
#undef TENON_VULKAN_MODULE
};

}  // namespace

std::span<const uint32_t> module_words(std::string_view name) {
  for (const Module& module : modules) {
    if (module.name == name) return module.words;
  }
  return {};
}

}  // namespace tenon::provider::vulkan
