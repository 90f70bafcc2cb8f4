// The suite: the tests of the contract and the cases of the primitives as one list, for one provider.
#pragma once

#include <vector>

#include "sdk/conformance/subject.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

// All tests, in a fixed order: loader/accepts first, the primitives last.
std::vector<Test> make_suite(const Target& target);

// The first test: if it fails no host would take the provider, and nothing else is run.
constexpr const char* first_test = "loader/accepts";

}  // namespace tenon::conformance
