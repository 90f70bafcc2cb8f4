// Samples: launches that the provider supports, one for each kind that it claims.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"
#include "sdk/conformance/primitive/work.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// A small case for each kind that the provider supports, without bad data; a simple one and f32 if possible. Computed
// once per process.
const std::vector<cases::Case>& find_samples(Subject& subject);
// The samples whose results are right when nothing else runs. A wrong kernel already fails in its own case; it would
// disturb tests of streams, threads and teardown.
const std::vector<cases::Case>& find_sound_samples(Subject& subject);
// The first sound sample, or NULL.
const cases::Case* find_sound_sample(Subject& subject);

// The case `name`, if the provider supports it and computes it correctly when nothing else runs.
std::optional<cases::Case> find_sound_case(Subject& subject, std::string_view name);

// The longest sound case of each kind that is still quick to check.
const std::vector<cases::Case>& find_long_samples(Subject& subject);

// A case that is ready to be created and submitted, with operands filled from `seed`, and the result of the reference.
struct Prepared {
  Prepared(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, uint64_t seed);
  // Compares the result with the reference. The stream has finished.
  Status compare() { return compare(work.image()); }
  // Compares the result `got` of other work with the reference.
  Status compare(const cases::Image& got);

  cases::Case test;
  ep_primitive_desc desc;
  cases::Image start, want;
  Work work;

 private:
  Accuracy accuracy_;
};

// Returns the descriptor of `test`, changed as the provider requires. Errors: Code::unsupported if the provider
// refuses.
Result<ep_primitive_desc> accepted_desc(Subject& subject, const cases::Case& test);

// Calls test(sample) for each of `samples` until one fails. Accepts that a provider refuses to create a case that it
// supports.
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
