// NvrtcCompiler: compiles CUDA C to machine code with the helper tenon-compile-cuda, which finds NVRTC at run time.
#pragma once

#include "sdk/provider/modules/compiler.h"

namespace tenon::provider::cuda {

class NvrtcCompiler final : public Compiler {
 public:
  // For devices of one compute capability: 90 means 9.0.
  NvrtcCompiler(const ep_host* host, uint32_t capability) : Compiler(host, "cuda", capability) {}

 private:
  void find(const std::string& choice, Toolchain* found) override;
};

}  // namespace tenon::provider::cuda
