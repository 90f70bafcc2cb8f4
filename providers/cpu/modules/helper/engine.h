// The compiler of a helper program: cc.cpp runs one of the system, clang.cpp links one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "providers/cpu/modules/helper/protocol.h"

namespace tenon::provider::cpu::helper {

struct Outcome {
  Result result = Result::failed;
  std::string output;         // what the compiler said; of Result::failed one sentence
  std::vector<char> library;  // a shared object
};

// The command-line options that decide what code is made, for every compiler: floats are computed as written, integers
// wrap, and nothing is assumed about types behind pointers.
std::vector<std::string> code_options(uint32_t vector_bytes);

// Finds the compiler. `chosen`: the absolute path of one, or empty. Called once, first.
Outcome identify(const std::string& chosen);
// Compiles `text`.
Outcome compile(const std::string& text, const Question& question);

}  // namespace tenon::provider::cpu::helper
