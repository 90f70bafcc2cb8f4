// The compiler of a helper program: a program of the system or a linked library.
#pragma once

#include <string>
#include <vector>

#include "sdk/provider/modules/helper/protocol.h"

namespace tenon::provider::helper {

struct Outcome {
  Result result = Result::failed;
  std::string output;        // the compiler's output; for Result::failed one sentence
  std::vector<char> binary;  // the compiled program
};

// Finds the compiler. `chosen` is the argument of the helper, or empty. Called once, before compile.
Outcome identify(const std::string& chosen);
// Compiles `text`.
Outcome compile(const std::string& text, const Question& question);

}  // namespace tenon::provider::helper
