// The suite: the tests of the contract and the cases of the primitives in one list, for one provider.
#pragma once

#include <vector>

#include "sdk/conformance/expectations.h"
#include "sdk/conformance/subject.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

// All tests, in a fixed order. loader/accepts is first, because no host loads a provider that fails it. Then come the
// contract and the primitives; claims/stated, which checks `expectations`, is last.
std::vector<Test> make_suite(const Target& target, const Expectations& expectations);

}  // namespace tenon::conformance
