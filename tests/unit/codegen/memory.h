// The buffers of a kernel in the memory of the host, and kernels from text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// Memory for each buffer of a kernel. Inputs hold random numbers, none of them 0; outputs hold a pattern.
class Memory {
 public:
  Memory(const Kernel& kernel, const std::vector<int64_t>& parameters, uint32_t seed);

  std::vector<void*> addresses();
  const std::vector<unsigned char>& bytes(size_t buffer) const { return buffers_[buffer]; }

 private:
  std::vector<std::vector<unsigned char>> buffers_;
};

// True if the outputs of two runs agree: floats within `ulps` of their dtype or `absolute`, integers exactly.
void expect_near(const Kernel& kernel, const Memory& expected, const Memory& actual, double ulps, double absolute,
                 const std::string& what);

// Parses `text` as a kernel.
Kernel parsed(const std::string& text);

}  // namespace tenon::codegen
