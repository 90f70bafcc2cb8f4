// The compiler of a helper program, which runs one of the system or links one.
#pragma once

#include <string>
#include <vector>

#include "sdk/provider/modules/helper/protocol.h"

namespace tenon::provider::helper {

struct Outcome {
  Result result = Result::failed;
  std::string output;        // what the compiler said; of Result::failed one sentence
  std::vector<char> binary;  // what was made
};

// Finds the compiler. `chosen`: the argument of the helper, or empty. Called once, first.
Outcome identify(const std::string& chosen);
// Compiles `text`.
Outcome compile(const std::string& text, const Question& question);

}  // namespace tenon::provider::helper
