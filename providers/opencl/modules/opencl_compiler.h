// OpenclCompiler: compiles OpenCL C to driver binaries with the helper tenon-compile-opencl.
#pragma once

#include "providers/opencl/driver/describe.h"
#include "sdk/provider/modules/compiler.h"

namespace tenon::provider::opencl {

class OpenclCompiler final : public Compiler {
 public:
  // `library`: the ICD loader. `device` must outlive the compiler.
  OpenclCompiler(const ep_host* host, const PhysicalDevice& device, std::string library)
      : Compiler(host, "opencl", 0), device_(device), library_(std::move(library)) {}

 private:
  void find(const std::string& choice, Toolchain* found) override;

  const PhysicalDevice& device_;
  const std::string library_;
};

}  // namespace tenon::provider::opencl
