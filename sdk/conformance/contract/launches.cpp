// Launches: equal bits when repeated, a primitive used again later, and faults.
#include <memory>
#include <set>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"

namespace tenon::conformance {

// Launches one f32 case of each kind twice, with different workspaces and EP_PRIMITIVE_FLAG_DETERMINISTIC.
Status launch_deterministic(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  std::set<int32_t> kinds;
  for (const cases::Case& sample : cases::all_cases()) {
    if (kinds.contains(sample.desc.kind) || sample.fault != 0) continue;
    if (sample.desc.operands[0].dtype != EP_DTYPE_f32) continue;
    cases::Case test = sample;
    test.desc.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
    const auto desc = accepted_desc(subject, test);
    if (!desc.ok()) continue;
    kinds.insert(test.desc.kind);
    Prepared first(subject, test, desc.value(), 1), second(subject, test, desc.value(), 1);
    second.work.dirt = 0xc4;
    const Drain drain(subject, stream);
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
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(kept.work.create());
  for (uint64_t round = 0; round < 3; ++round) {
    Prepared other(subject, sample, desc, 610 + round);
    const Drain drain_other(subject, stream);
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

// Launches a primitive, creates and destroys another primitive with the same descriptor, then launches the first one
// again with other operands.
Status launch_late(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  return for_each_sound_sample(subject, [&](const cases::Case& sample) { return use_late(subject, stream, sample); });
}

namespace {

std::string tags_text(const std::vector<uint64_t>& tags) {
  std::string text;
  for (size_t i = 0; i < tags.size(); ++i) {
    text += fmt::format("{}{:#x}", i == 0 ? "" : i + 1 == tags.size() ? " and " : ", ", tags[i]);
  }
  return text;
}

// `met` has the tags of the launches with bad data, in launch order.
Status compare_tags(const std::vector<ep_fault>& faults, const std::vector<uint64_t>& met) {
  uint64_t last = 0;
  std::set<uint64_t> seen;
  bool overflow = false;
  for (const ep_fault& fault : faults) {
    if (std::find(met.begin(), met.end(), fault.tag) == met.end()) {
      return broken("F01", "a fault names launch {:#x}, which met no bad data; the launches that did are {}", fault.tag,
                    tags_text(met));
    }
    if (fault.tag < last) {
      return broken("F01", "the fault of launch {:#x} came before that of launch {:#x}", last, fault.tag);
    }
    seen.insert(last = fault.tag);
    overflow = overflow || (fault.flags & EP_FAULT_FLAG_OVERFLOW) != 0;
  }
  for (uint64_t tag : met) {
    if (!overflow && !seen.contains(tag)) {
      return broken("F01", "launch {:#x} met bad data, and no fault names it", tag);
    }
  }
  return {};
}

// Submits three launches with bad data and then one with good data.
Status meet_faults(Subject& subject, const Stream& stream, const cases::Case& test) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, test));
  std::vector<std::unique_ptr<Prepared>> all;
  const std::vector<uint64_t> tags = {0x700, 0x701, 0x702};
  for (uint64_t tag : tags) {
    all.push_back(std::make_unique<Prepared>(subject, test, desc, tag));
    all.back()->work.tag = tag;
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
  TENON_RETURN_IF_ERROR(compare_tags(faults, tags));
  const Status same = after.compare();
  return same.ok() ? same : broken("P07", "work after a fault did not run: {}", without_rule(same).message());
}

}  // namespace

// Checks for each kind that faults are in launch order, with the tags of their launches, and that later work runs.
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

// Takes faults when there are none: before any work, while work is in flight, and after it.
Status faults_none(Subject& subject) {
  if (subject.ops.stream_take_fault == nullptr) return skipped("it has no stream_take_fault.");
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const auto none = [&] {
    Poisoned<ep_fault> fault("out_fault");
    const Status status = refuses(
        subject, "stream_take_fault", {Code::not_found},
        [&](ep_error** error) { return subject.ops.stream_take_fault(stream.get(), &fault.value, error); }, fault);
    return status;
  };
  TENON_RETURN_IF_ERROR(none());
  return for_each_sound_sample(subject, [&](const cases::Case& sample) -> Status {
    TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
    Prepared prepared(subject, sample, desc, 720);
    const Drain drain(subject, stream);
    TENON_RETURN_IF_ERROR(prepared.work.create());
    TENON_RETURN_IF_ERROR(prepared.work.submit(stream));
    TENON_RETURN_IF_ERROR(none());
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    TENON_RETURN_IF_ERROR(none());
    return prepared.compare();
  });
}

}  // namespace tenon::conformance
