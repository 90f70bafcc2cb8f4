#include "sdk/conformance/primitive/check.h"

#include <algorithm>

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "sdk/conformance/primitive/work.h"
#include "tests/cases/compare.h"

namespace tenon::conformance {
namespace {

using cases::Case;
using cases::Image;

// Replaces dims and strides by EP_ANY where `flags` allow it. Strides 0 and 1 stay fixed.
ep_primitive_desc with_any(ep_primitive_desc desc, uint64_t flags) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (flags & EP_SUPPORT_FLAG_ANY_DIMS) operand.dims[axis] = EP_ANY;
      if (flags & EP_SUPPORT_FLAG_ANY_STRIDES && operand.strides[axis] > 1) operand.strides[axis] = EP_ANY;
    }
  }
  return desc;
}

ep_primitive_desc with_dims_of(ep_primitive_desc desc, const ep_primitive_desc& fixed) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    std::copy_n(fixed.operands[i].dims, EP_MAX_RANK, desc.operands[i].dims);
    std::copy_n(fixed.operands[i].strides, EP_MAX_RANK, desc.operands[i].strides);
  }
  return desc;
}

Status compare_faults(const Case& test, const ep_fault& want, const Work& work) {
  if (work.faults().empty()) {
    return test.fault == 0 ? Status() : broken("P07", "fault {} was not reported", test.fault);
  }
  const ep_fault& got = work.faults().front();
  if (test.fault == 0) {
    return broken("P07", "an unexpected fault {} of operand {}, value {}, was reported", got.code, got.operand,
                  got.value);
  }
  if (got.code != want.code || got.operand != want.operand) {
    return broken("P07", "fault {} of operand {} was reported instead of fault {} of operand {}", got.code, got.operand,
                  want.code, want.operand);
  }
  // Negative indices count from the end, except in pooling_backward and recurrent. A length may equal its limit.
  const bool from_start = test.desc.kind == EP_PRIMITIVE_pooling_backward || test.desc.kind == EP_PRIMITIVE_recurrent;
  const int64_t least = from_start ? 0 : -want.limit;
  const int64_t end = test.desc.kind == EP_PRIMITIVE_recurrent ? want.limit + 1 : want.limit;
  const bool is_bad =
      want.code == EP_FAULT_INDEX_OUT_OF_RANGE ? got.value >= end || got.value < least : got.value == want.value;
  if (!is_bad) {
    return broken("P07", "fault {} of operand {} names the value {}, which is not a bad one (the first bad one is {})",
                  got.code, got.operand, got.value, want.value);
  }
  if (got.limit != want.limit) {
    return broken("P07", "fault {} of operand {} names the limit {}, which is {}", got.code, got.operand, got.limit,
                  want.limit);
  }
  if (got.tag != work.tag) {
    return broken("F01", "the fault names launch {:#x}, it was launch {:#x}", got.tag, work.tag);
  }
  return {};
}

// How a case is run. The defaults are the most demanding.
struct Manner {
  bool in_place = false;
  bool spoils = true;  // overwrite borrowed arguments after each call
  bool waits = false;  // wait between upload, launch and download
  Accuracy held = {};  // the required accuracy
};

Status run_once(Subject& subject, const Stream& stream, const Case& test, const ep_primitive_desc& launched,
                Manner manner) {
  const ep_primitive_desc fixed = with_dims_of(launched, test.desc);
  Image start = cases::make_image(fixed, manner.in_place, descriptor::has_any(launched) ? 1 : 0);
  cases::fill_inputs(test, fixed, &start);
  Image want = start;
  std::vector<void*> addresses;
  for (uint32_t i = 0; i < fixed.operand_count; ++i) addresses.push_back(want.address(i));
  ep_fault fault{};
  const Status expected =
      reference::run(fixed, addresses.data(), test.scalars.data(), static_cast<uint32_t>(test.scalars.size()), &fault);
  if (!expected.ok() && expected.code() != Code::fault) return expected.with_context("  in the reference");
  if (fault.code != test.fault) {
    return Status(Code::internal, fmt::format("the reference met fault {}, not {}.", fault.code, test.fault));
  }
  Work work(subject, launched, fixed, test.scalars, start);
  const Drain drain(subject, stream);
  work.spoils = manner.spoils;
  work.waits = manner.waits;
  work.tag = 0x7e0000000000 + static_cast<uint64_t>(fixed.kind);
  TENON_RETURN_IF_ERROR(work.create());
  TENON_RETURN_IF_ERROR(work.submit(stream));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  TENON_RETURN_IF_ERROR(work.settle(stream));
  TENON_RETURN_IF_ERROR(compare_faults(test, fault, work));
  return cases::compare_images(test, fixed, start, manner.held, work.image(), want);
}

// Finds the reason for a wrong result: runs the case alternately as it was and with one change, to see if the change
// helps.
class Diagnosis {
 public:
  Diagnosis(Subject& subject, const Stream& stream, const Case& test, const ep_primitive_desc& launched)
      : subject_(subject), stream_(stream), test_(test), launched_(launched) {}

  // True if all `rounds` runs in the manner `helped` are right and at least `failures` runs in the manner `as_it_was`
  // are wrong.
  bool helps(Manner as_it_was, Manner helped, int rounds, int failures) const {
    int failed = 0;
    for (int round = 0; round < rounds; ++round) {
      if (!run(helped).ok()) return false;
      if (!run(as_it_was).ok()) ++failed;
    }
    return failed >= failures;
  }

 private:
  Status run(Manner manner) const { return run_once(subject_, stream_, test_, launched_, manner); }

  Subject& subject_;
  const Stream& stream_;
  const Case& test_;
  const ep_primitive_desc& launched_;
};

// Runs the case and finds the reason for a wrong result. If a stream is not in order, results are right with waits
// between the steps and only sometimes right without. If the provider reads borrowed arguments after the call, results
// are always right if they are not overwritten, and always wrong otherwise.
Status run_mode(Subject& subject, const Stream& stream, const Case& test, const ep_primitive_desc& launched,
                bool in_place, const Accuracy& held) {
  const Manner manner = {in_place, true, false, held};
  const Status status = run_once(subject, stream, test, launched, manner);
  if (status.code() != Code::internal) return status;
  const Diagnosis diagnosis(subject, stream, test, launched);
  if (!subject.synchronous() && diagnosis.helps(manner, {in_place, true, true, held}, 10, 2)) {
    return broken("S01",
                  "upload, launch and download of one stream did not run in order, since with a wait between "
                  "them the result is right: {}",
                  without_rule(status).message());
  }
  if (!diagnosis.helps(manner, {in_place, false, false, held}, 3, 3)) return status;
  return broken("M01", "it reads memory after the call that was lent only for the call: {}",
                without_rule(status).message());
}

std::string_view implementation_of(const ep_support_info& terms) {
  return {terms.implementation.data, static_cast<size_t>(terms.implementation.size)};
}

Status check_penalty(const ep_primitive_desc& desc, const ep_support_info& terms) {
  const uint64_t greatest = descriptor::greatest_penalty(desc);
  if (terms.penalty_bytes <= greatest) return {};
  return broken("W01", "primitive_support states a penalty of {} bytes, and {} are possible", terms.penalty_bytes,
                greatest);
}

// The accuracy that a primitive must have if it keeps the demand `tier`.
Accuracy promised(Tier tier, const Accuracy& stated) {
  if (tier == Tier::full) return {};
  if (tier == Tier::relaxed) return {0, floating_dtypes(), floating_dtypes()};
  return {floating_dtypes(), 0, stated.flushed};
}

// A device may use the permission EP_PRECISION_RELAXED for single primitives, which must then keep tier relaxed.
Status run_relaxed(Subject& subject, const Stream& stream, const Case& test) {
  ep_primitive_desc permitting = test.desc;
  permitting.precision = EP_PRECISION_RELAXED;
  const auto terms = ask_support(subject, permitting);
  if (!terms.ok()) return terms.status().code() == Code::unsupported ? Status() : terms.status();
  if ((terms->flags & EP_SUPPORT_FLAG_RELAXED) == 0) return {};
  TENON_RETURN_IF_ERROR(check_penalty(permitting, terms.value()));
  const Status status = run_mode(subject, stream, test, on_terms(test, permitting, terms.value()), false,
                                 promised(Tier::relaxed, subject.accuracy));
  if (status.ok() || status.code() != Code::internal) return status;
  return broken("B04", "support said that the primitive keeps tier relaxed, and it does not: {}",
                without_rule(status).message());
}

// A device with a lower stated accuracy may accept a higher demand for single primitives, which must then meet it.
Status run_demands(Subject& subject, const Stream& stream, const Case& test) {
  for (Tier tier : {Tier::portable, Tier::full}) {
    ep_primitive_desc demanding = test.desc;
    demanding.precision = static_cast<int32_t>(tier);
    if (why_below(demanding, subject.accuracy).empty()) continue;
    const auto terms = ask_support(subject, demanding);
    if (!terms.ok() && terms.status().code() != Code::unsupported) return terms.status();
    if (!terms.ok() || (terms->flags & EP_SUPPORT_FLAG_PRECISION) == 0) continue;
    const Status status = run_mode(subject, stream, test, on_terms(test, demanding, terms.value()), false,
                                   promised(tier, subject.accuracy));
    if (status.ok() || status.code() == Code::unsupported) continue;
    if (status.code() != Code::internal) return status;
    return broken("B03", "support said that the primitive keeps precision {}, and it does not: {}", tier_name(tier),
                  without_rule(status).message());
  }
  return {};
}

Status run_modes(Subject& subject, const Stream& stream, const Case& test, const ep_support_info& terms) {
  if (implementation_of(terms).empty())
    return broken("P17", "primitive_support returns OK but names no implementation");
  TENON_RETURN_IF_ERROR(check_penalty(test.desc, terms));
  if ((terms.flags & EP_SUPPORT_FLAG_RELAXED) != 0) {
    return broken("B04",
                  "primitive_support set EP_SUPPORT_FLAG_RELAXED, and the descriptor does not permit tier relaxed");
  }
  const ep_primitive_desc fixed = on_terms(test, test.desc, terms);
  TENON_RETURN_IF_ERROR(run_mode(subject, stream, test, fixed, false, subject.accuracy));
  if (cases::can_run_in_place(fixed)) {
    const Status status = run_mode(subject, stream, test, fixed, true, subject.accuracy);
    if (!status.ok()) return status.with_context("  while running in place");
  }
  TENON_RETURN_IF_ERROR(run_demands(subject, stream, test));
  TENON_RETURN_IF_ERROR(run_relaxed(subject, stream, test));
  const uint64_t any = terms.flags & (EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES);
  if (any == 0) return {};
  const ep_primitive_desc open = with_any(test.desc, any);
  const auto open_terms = ask_support(subject, open);
  if (open_terms.status().code() == Code::out_of_host_memory) return open_terms.status();
  if (open_terms.ok()) TENON_RETURN_IF_ERROR(check_penalty(open, open_terms.value()));
  if (!open_terms.ok()) {
    return broken("P03", "support said that dims or strides may be given at launch, and then: {}",
                  without_rule(open_terms.status()).message());
  }
  const Status status =
      run_mode(subject, stream, test, on_terms(test, open, open_terms.value()), false, subject.accuracy);
  return status.ok() ? status : status.with_context("  with dims or strides given at launch");
}

}  // namespace

Result<ep_support_info> ask_support(Subject& subject, const ep_primitive_desc& desc) {
  auto info = with_header<ep_support_info>(EP_STRUCT_SUPPORT_INFO);
  note_descriptor(descriptor::to_string(desc));
  TENON_RETURN_IF_ERROR(subject.call("primitive_support", subject.ops.primitive_support, subject.device, &desc, &info));
  return info;
}

ep_primitive_desc on_terms(const Case& test, const ep_primitive_desc& asked, const ep_support_info& terms) {
  ep_primitive_desc desc = asked;
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS && slot < test.scalars.size(); ++slot) {
    if ((terms.baked_scalars >> slot & 1) == 0) continue;
    desc.baked_scalars |= uint32_t{1} << slot;
    desc.scalars[slot] = test.scalars[slot];
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    desc.operands[i].alignment = std::max(desc.operands[i].alignment, terms.alignment[i]);
  }
  return desc;
}

Status run_case(Subject& subject, const Stream& stream, const Case& test) {
  const auto terms = ask_support(subject, test.desc);
  Status status = terms.status();
  if (status.ok()) status = run_modes(subject, stream, test, terms.value());
  return status.code() == Code::unsupported ? not_claimed("unsupported: {}", status.sentence()) : status;
}

Status check_case(Subject& subject, const Stream& stream, const Case& test) {
  Status status = run_case(subject, stream, test);
  if (status.code() == skip_code) return status;
  if (const Status violation = subject.host.take_violation(); !violation.ok()) status = violation;
  if (status.ok()) return status;
  const auto terms = ask_support(subject, test.desc);
  std::string implementation = terms.ok() ? std::string(implementation_of(terms.value())) : std::string();
  if (implementation.empty()) implementation = "without a name";
  return status.with_context(
      fmt::format("  implementation {}, descriptor {}", implementation, descriptor::to_string(test.desc)));
}

}  // namespace tenon::conformance
