// The options of every C compiler of the cpu provider's helpers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::provider::helper {

// The command-line options that decide what code is made, for vectors of 16, 32 or 64 bytes: floats are computed as
// written, integers wrap, and nothing is assumed about types behind pointers.
std::vector<std::string> code_options(uint32_t vector_bytes);

}  // namespace tenon::provider::helper
