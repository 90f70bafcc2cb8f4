// The suite: the tests of the contract and the cases of the primitives in one list, for one provider.
#pragma once

#include <vector>

#include "sdk/conformance/subject.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

// All tests, in a fixed order. loader/accepts is first, because no host takes a provider that fails it. The primitives
// are last.
std::vector<Test> make_suite(const Target& target);

}  // namespace tenon::conformance
