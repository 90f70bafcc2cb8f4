// GlslCompiler: compiles GLSL to SPIR-V with the helper tenon-compile-glsl.
#pragma once

#include "sdk/provider/modules/compiler.h"

namespace tenon::provider::vulkan {

class GlslCompiler final : public Compiler {
 public:
  explicit GlslCompiler(const ep_host* host) : Compiler(host, "vulkan", 0) {}

 private:
  void find(const std::string& choice, Toolchain* found) override;
};

}  // namespace tenon::provider::vulkan
