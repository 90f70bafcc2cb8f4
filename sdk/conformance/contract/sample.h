// Launches that the provider can do, one of each kind it claims, for tests that need any or all of them.
#pragma once

#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"
#include "sdk/conformance/primitive/work.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// A small case of each kind the provider supports, f32 where there is one, none that meets bad data; the plainest
// first. Looked for once per process.
const std::vector<cases::Case>& find_samples(Subject& subject);
// Of these the ones that give the right result when nothing else goes on: what is wrong anyway shows in its own case,
// and tells nothing of streams, threads or teardown.
const std::vector<cases::Case>& find_sound_samples(Subject& subject);
// The first of them, or null.
const cases::Case* find_sound_sample(Subject& subject);

// The same kinds, the longest case of each that is still quick to check, and sound.
const std::vector<cases::Case>& find_long_samples(Subject& subject);

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

// test(sample) for each of `samples`, until one fails; a provider may still refuse to create what it supports.
template <class Test>
Status for_each_of(const std::vector<cases::Case>& samples, const Test& test) {
  for (const cases::Case& sample : samples) {
    const Status status = test(sample);
    if (status.ok() || status.code() == Code::unsupported) continue;
    return status.with_context(fmt::format("  with {}, {}", sample.name, descriptor::to_string(sample.desc)));
  }
  return {};
}
template <class Test>
Status for_each_sound_sample(Subject& subject, const Test& test) {
  const std::vector<cases::Case>& samples = find_sound_samples(subject);
  if (samples.empty()) return skipped("of the cases it supports none gives the right result even alone.");
  return for_each_of(samples, test);
}

}  // namespace tenon::conformance
