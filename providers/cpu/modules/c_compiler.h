// CCompiler: C into shared objects, by the helper that links clang or by one that runs a compiler of the system.
#pragma once

#include "sdk/provider/modules/compiler.h"

namespace tenon::provider::cpu {

class CCompiler final : public Compiler {
 public:
  // For code that may use vectors of so many bytes: 16, 32 or 64.
  CCompiler(const ep_host* host, uint32_t vector_bytes) : Compiler(host, "cpu", vector_bytes) {}

 private:
  void find(const std::string& choice, Toolchain* found) override;
};

}  // namespace tenon::provider::cpu
