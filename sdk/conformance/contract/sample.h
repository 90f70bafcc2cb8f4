// A launch that the provider can do, for tests that need any.
#pragma once

#include "sdk/conformance/primitive/work.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// A small f32 case the provider supports, the plainest there is; null if it supports none at all. Looked for once per
// process.
const cases::Case* find_sample(Subject& subject);

// `test` ready to be created and submitted, its operands filled by `seed`, and what the reference makes of it.
struct Prepared {
  Prepared(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, uint64_t seed);
  // After the stream has finished.
  Status compare() const;

  cases::Case test;
  ep_primitive_desc desc;
  cases::Image start, want;
  Work work;
};

// On the terms the provider asks for. Code::unsupported where it refuses.
Result<ep_primitive_desc> accepted_desc(Subject& subject, const cases::Case& test);

}  // namespace tenon::conformance
