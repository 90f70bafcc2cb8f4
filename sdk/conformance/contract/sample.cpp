#include "sdk/conformance/contract/sample.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

#include "primitives/reference/reference.h"
#include "sdk/conformance/primitive/check.h"
#include "tests/cases/compare.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view plain_names[] = {"unary/relu/f32/vector", "binary/add/f32/vector", "copy/f32_to_f32/vector"};
constexpr int64_t most_elements = 20000;

int64_t elements_of(const cases::Case& test) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
    const ep_operand_desc& operand = test.desc.operands[i];
    int64_t count = 1;
    for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
    sum += count;
  }
  return sum;
}

bool is_plain(const cases::Case& test) {
  return std::find(std::begin(plain_names), std::end(plain_names), test.name) != std::end(plain_names);
}

// A candidate with its rank: plain cases first, then f32, then the smallest. For long samples: the longest of the quick
// cases.
struct Candidate {
  const cases::Case* test;
  int order;
  int64_t elements;
};

std::vector<Candidate> candidates(const std::vector<cases::Case>& all, bool large) {
  std::vector<Candidate> found;
  for (const cases::Case& test : all) {
    if (test.fault != 0) continue;
    const bool is_f32 = test.desc.operands[0].dtype == EP_DTYPE_f32;
    const int64_t elements = elements_of(test);
    if (large && elements > most_elements) continue;
    found.push_back({&test, !large && is_plain(test) ? 0 : is_f32 ? 1 : 2, large ? -elements : elements});
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.order, a.elements) < std::tuple(b.order, b.elements);
  });
  return found;
}

std::vector<cases::Case> search(Subject& subject, bool large) {
  const std::vector<cases::Case>& all = cases::all_cases();
  std::vector<cases::Case> found;
  std::set<int32_t> kinds;
  for (const Candidate& candidate : candidates(all, large)) {
    const cases::Case& test = *candidate.test;
    if (kinds.contains(test.desc.kind) || !accepted_desc(subject, test).ok()) continue;
    kinds.insert(test.desc.kind);
    found.push_back(test);
  }
  return found;
}

std::vector<cases::Case> sound_ones(Subject& subject, const std::vector<cases::Case>& samples) {
  const auto stream = subject.make_stream();
  std::vector<cases::Case> sound;
  for (const cases::Case& sample : samples) {
    if (stream.ok() && run_case(subject, stream.value(), sample).ok()) sound.push_back(sample);
  }
  return sound;
}

cases::Image filled(const cases::Case& test, const ep_primitive_desc& desc) {
  cases::Image image = cases::make_image(desc, false);
  cases::fill_inputs(test, desc, &image);
  return image;
}

cases::Case named(cases::Case test, uint64_t seed) {
  test.name += std::to_string(seed);  // the name determines the seed of the values
  return test;
}

}  // namespace

const std::vector<cases::Case>& find_samples(Subject& subject) {
  static const auto* found = new std::vector<cases::Case>(search(subject, false));
  return *found;
}

const std::vector<cases::Case>& find_long_samples(Subject& subject) {
  static const auto* found = new std::vector<cases::Case>(sound_ones(subject, search(subject, true)));
  return *found;
}

const std::vector<cases::Case>& find_sound_samples(Subject& subject) {
  static const auto* found = new std::vector<cases::Case>(sound_ones(subject, find_samples(subject)));
  return *found;
}

std::optional<cases::Case> find_sound_case(Subject& subject, std::string_view name) {
  std::vector<cases::Case> named;
  for (const cases::Case& one : cases::all_cases()) {
    if (one.name == name) named.push_back(one);
  }
  const std::vector<cases::Case> sound = sound_ones(subject, named);
  return sound.empty() ? std::nullopt : std::optional(sound.front());
}

const cases::Case* find_sound_sample(Subject& subject) {
  const std::vector<cases::Case>& samples = find_sound_samples(subject);
  return samples.empty() ? nullptr : &samples.front();
}

Result<ep_primitive_desc> accepted_desc(Subject& subject, const cases::Case& test) {
  TENON_ASSIGN_OR_RETURN(const ep_support_info terms, ask_support(subject, test.desc));
  return on_terms(test, test.desc, terms);
}

Prepared::Prepared(Subject& subject, const cases::Case& from, const ep_primitive_desc& on_these_terms, uint64_t seed)
    : test(named(from, seed)),
      desc(on_these_terms),
      start(filled(test, desc)),
      want(start),
      work(subject, desc, desc, test.scalars, start),
      accuracy_(subject.accuracy) {
  std::vector<void*> addresses;
  for (uint32_t i = 0; i < desc.operand_count; ++i) addresses.push_back(want.address(i));
  const Status run =
      reference::run(desc, addresses.data(), test.scalars.data(), static_cast<uint32_t>(test.scalars.size()), nullptr);
  if (!run.ok() && run.code() != Code::fault) subject.host.violate(run.with_context("  in the reference"));
}

Status Prepared::compare(const cases::Image& got) {
  return cases::compare_images(test, desc, start, accuracy_, got, want);
}

}  // namespace tenon::conformance
