// Launches: equal bits on repetition, a primitive used late, and faults.
#include <memory>
#include <set>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"

namespace tenon::conformance {

// Launches one f32 case of each kind twice over different workspaces, with the flag for equal bits.
Status launch_deterministic(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  std::set<int32_t> kinds;
  for (cases::Case& test : cases::all_cases()) {
    if (kinds.contains(test.desc.kind) || test.fault != 0 || test.desc.operands[0].dtype != EP_DTYPE_f32) continue;
    test.desc.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
    const auto desc = accepted_desc(subject, test);
    if (!desc.ok()) continue;
    kinds.insert(test.desc.kind);
    Prepared first(subject, test, desc.value(), 1), second(subject, test, desc.value(), 1);
    second.work.dirt = 0xc4;
    for (Prepared* one : {&first, &second}) {
      TENON_RETURN_IF_ERROR(one->work.create());
      TENON_RETURN_IF_ERROR(one->work.submit(stream));
      TENON_RETURN_IF_ERROR(subject.finish(stream));
    }
    if (first.work.image().bytes != second.work.image().bytes) {
      return broken("P15", "{} was to be deterministic and gave two results", test.name);
    }
  }
  if (kinds.empty()) return skipped("it supports no f32 case with EP_PRIMITIVE_FLAG_DETERMINISTIC.");
  return {};
}

namespace {

Status use_late(Subject& subject, const Stream& stream, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  Prepared kept(subject, sample, desc, 600);
  TENON_RETURN_IF_ERROR(kept.work.create());
  for (uint64_t round = 0; round < 3; ++round) {
    Prepared other(subject, sample, desc, 610 + round);
    TENON_RETURN_IF_ERROR(other.work.create());
    TENON_RETURN_IF_ERROR(other.work.submit(stream));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    TENON_RETURN_IF_ERROR(other.compare());
  }
  TENON_RETURN_IF_ERROR(kept.work.submit(stream));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  return kept.compare();
}

}  // namespace

// Launches a primitive, then launches it again with other operands. In between a primitive of the same descriptor is
// created and destroyed.
Status launch_late(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  return for_each_sound_sample(subject, [&](const cases::Case& sample) { return use_late(subject, stream, sample); });
}

namespace {

Status compare_tags(const std::vector<ep_fault>& faults) {
  uint64_t last = 0;
  std::set<uint64_t> seen;
  for (const ep_fault& fault : faults) {
    if (fault.tag < last) {
      return broken("F01", "the fault of launch {} came before that of launch {}", last, fault.tag);
    }
    seen.insert(last = fault.tag);
  }
  if (seen == std::set<uint64_t>{0x700, 0x701, 0x702}) return {};
  return broken("F01", "three launches met a fault each, {} different launches were named", seen.size());
}

// Submits three launches that meet bad data, and then a good one.
Status meet_faults(Subject& subject, const Stream& stream, const cases::Case& test) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, test));
  std::vector<std::unique_ptr<Prepared>> all;
  for (uint64_t i = 0; i < 3; ++i) {
    all.push_back(std::make_unique<Prepared>(subject, test, desc, 700 + i));
    all.back()->work.tag = 0x700 + i;
    TENON_RETURN_IF_ERROR(all.back()->work.create());
  }
  const cases::Case* sample = find_sound_sample(subject);
  if (sample == nullptr) return skipped("it gives no right result that could come after a fault.");
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc healthy, accepted_desc(subject, *sample));
  Prepared after(subject, *sample, healthy, 710);
  TENON_RETURN_IF_ERROR(after.work.create());
  const Drain drain(subject, stream);
  for (const auto& one : all) TENON_RETURN_IF_ERROR(one->work.submit(stream));
  TENON_RETURN_IF_ERROR(after.work.submit(stream));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  std::vector<ep_fault> faults;
  if (subject.synchronous()) {
    for (const auto& one : all) faults.insert(faults.end(), one->work.faults().begin(), one->work.faults().end());
  } else {
    TENON_RETURN_IF_ERROR(take_faults(subject, stream, &faults));
  }
  TENON_RETURN_IF_ERROR(compare_tags(faults));
  const Status same = after.compare();
  return same.ok() ? same : broken("P07", "work after a fault did not run: {}", same.message());
}

}  // namespace

// Checks for each kind that faults come in the order of the launches, each with the tag of its launch, and that later
// work runs.
Status faults_in_order(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  std::vector<cases::Case> tests;
  std::set<int32_t> kinds;
  for (const cases::Case& test : cases::all_cases()) {
    if (test.fault == 0 || kinds.contains(test.desc.kind) || !accepted_desc(subject, test).ok()) continue;
    kinds.insert(test.desc.kind);
    tests.push_back(test);
  }
  if (tests.empty()) return skipped("it supports no case in which a kernel meets bad data.");
  return for_each_of(tests, [&](const cases::Case& test) { return meet_faults(subject, stream, test); });
}

}  // namespace tenon::conformance
