#include "providers/opencl/modules/opencl_compiler.h"

#include <fmt/core.h>

namespace tenon::provider::opencl {

void OpenclCompiler::find(const std::string& choice, Toolchain* found) {
  if (!choice.empty()) {
    found->sentence = fmt::format("The setting compiler of provider opencl is '{}'.", choice);
    found->remedy = "Set compiler of [provider.opencl] to 'none', or leave it out.";
    return;
  }
  found->helper = find_helper("tenon-compile-opencl");
  if (found->helper.empty()) {
    found->sentence = "The helper program tenon-compile-opencl is not installed with this provider.";
    found->remedy = "Install the helper of this build.";
    return;
  }
  found->chosen = fmt::format("{}\n{}\n{}", device_.number, library_, device_.fingerprint);
  identify(found, "Check that the driver works in another process of this user.", device_.compiler);
}

}  // namespace tenon::provider::opencl
