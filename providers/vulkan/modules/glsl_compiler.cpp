#include "providers/vulkan/modules/glsl_compiler.h"

#include <fmt/core.h>

namespace tenon::provider::vulkan {

void GlslCompiler::find(const std::string& choice, Toolchain* found) {
  if (!choice.empty()) {
    found->sentence = fmt::format("The setting compiler of provider vulkan is '{}'.", choice);
    found->remedy = "Set compiler of [provider.vulkan] to 'none', or leave it out.";
    return;
  }
  found->helper = find_helper("tenon-compile-glsl");
  if (found->helper.empty()) {
    found->sentence = "The helper program tenon-compile-glsl is not installed with this provider.";
    found->remedy = "Install it, or build with glslang-dev.";
    return;
  }
  identify(found, "Install the helper of this build.");
}

}  // namespace tenon::provider::vulkan
