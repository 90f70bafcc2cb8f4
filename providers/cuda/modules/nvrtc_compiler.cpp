#include "providers/cuda/modules/nvrtc_compiler.h"

#include <fmt/core.h>

namespace tenon::provider::cuda {

void NvrtcCompiler::find(const std::string& choice, Toolchain* found) {
  if (!choice.empty() && choice[0] != '/') {
    found->sentence = fmt::format("The setting compiler of provider cuda is '{}'.", choice);
    found->remedy = "Set compiler of [provider.cuda] to the absolute path of libnvrtc, to 'none', or leave it out.";
    return;
  }
  found->helper = find_helper("tenon-compile-cuda");
  if (found->helper.empty()) {
    found->sentence = "The helper program tenon-compile-cuda is not installed with this provider.";
    found->remedy = "Install it, or build with the CUDA Toolkit's nvrtc.h.";
    return;
  }
  found->chosen = choice;
  identify(found, "Install NVRTC of CUDA 12 or 13 (the package cuda-nvrtc), or name libnvrtc in the setting compiler.");
}

}  // namespace tenon::provider::cuda
