// CCompiler: compiles C to shared objects, with the helper that links clang or with the helper that runs a system
// compiler.
#pragma once

#include "sdk/provider/modules/compiler.h"

namespace tenon::provider::cpu {

class CCompiler final : public Compiler {
 public:
  // The code may use vectors of `vector_bytes` bytes: 16, 32 or 64.
  CCompiler(const ep_host* host, uint32_t vector_bytes) : Compiler(host, "cpu", vector_bytes) {}

 private:
  void find(const std::string& choice, Toolchain* found) override;
};

}  // namespace tenon::provider::cpu
