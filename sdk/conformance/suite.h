// The suite: the tests of the contract and the cases of the primitives as one list, for one provider.
#pragma once

#include <vector>

#include "sdk/conformance/subject.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

// All tests, in a fixed order: the first is loader/accepts, for where that fails no host would take the provider; the
// primitives are last.
std::vector<Test> make_suite(const Target& target);

}  // namespace tenon::conformance
