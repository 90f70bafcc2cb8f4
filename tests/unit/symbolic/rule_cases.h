// A case for each rule of sizes: inputs and attributes as text over the symbols S0 to S3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/op_call.h"
#include "core/ops/sym_call.h"

namespace tenon::symbolic {

struct RuleCase {
  std::string name;
  std::vector<std::string> inputs;  // "S0, 4"; "-" for an absent one
  // The attribute struct as words; and the sizes inside it, by the index of their word.
  std::vector<uint64_t> attributes = {};
  std::vector<std::pair<uint32_t, std::string>> patches = {};
  size_t outputs = 1;
  // Dtypes of the inputs; an input without an entry is f32, but a first condition is bool.
  std::vector<DType> dtypes = {};
};

// The cases for the rule of `op`; none for a composite.
std::vector<RuleCase> rule_cases(const OpInfo& op);

}  // namespace tenon::symbolic
