// Options shared by all C compilers of the cpu provider's helpers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::provider::helper {

// The command-line options that affect the generated code, for vectors of 16, 32 or 64 bytes: floating-point
// expressions are not rearranged, integers wrap, and pointers of different types may alias.
std::vector<std::string> code_options(uint32_t vector_bytes);

}  // namespace tenon::provider::helper
