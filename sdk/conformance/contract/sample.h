// Samples: launches that the provider can do, one of each kind that it claims.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"
#include "sdk/conformance/primitive/work.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// A small case of each kind that the provider supports: the plainest first, f32 if possible, none with bad data.
// Computed once per process.
const std::vector<cases::Case>& find_samples(Subject& subject);
// The samples whose results are right when nothing else runs. A wrong kernel fails in its own case and says nothing
// about streams, threads or teardown.
const std::vector<cases::Case>& find_sound_samples(Subject& subject);
// The first sound sample, or NULL.
const cases::Case* find_sound_sample(Subject& subject);

// The case `name`, if the provider supports it and computes it right when nothing else runs.
std::optional<cases::Case> find_sound_case(Subject& subject, std::string_view name);

// For each of these kinds, the longest sound case that is still quick to check.
const std::vector<cases::Case>& find_long_samples(Subject& subject);

// A `test` that is ready to be created and submitted, with operands filled by `seed`, and the result of the reference.
struct Prepared {
  Prepared(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, uint64_t seed);
  // Compares the result with the reference. The stream has finished.
  Status compare() { return compare(work.image()); }
  // The same of the result of another's work.
  Status compare(const cases::Image& got);

  cases::Case test;
  ep_primitive_desc desc;
  cases::Image start, want;
  Work work;

 private:
  Accuracy accuracy_;
};

// The descriptor of `test` on the provider's terms. Errors: Code::unsupported if the provider refuses.
Result<ep_primitive_desc> accepted_desc(Subject& subject, const cases::Case& test);

// Calls test(sample) for each of `samples` until one fails. A provider may refuse to create what it supports.
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
