// Compares a provider with the reference, on one case of tests/cases, in every way in which the case can run.
#pragma once

#include "sdk/conformance/subject.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// Returns the provider's requirements for `desc`. Errors: Code::unsupported if the provider refuses.
Result<ep_support_info> ask_support(Subject& subject, const ep_primitive_desc& desc);

// Applies the requirements: bakes scalars into the descriptor, and promises the alignment that the provider needs.
ep_primitive_desc on_terms(const cases::Case& test, const ep_primitive_desc& asked, const ep_support_info& terms);

// Runs `test` with static dims, in place if its kind allows it, and with dims and strides given at launch if the
// provider supports it. Skipped if the provider does not support the case.
Status check_case(Subject& subject, const Stream& stream, const cases::Case& test);
// Like check_case, but leaves violations in the host.
Status run_case(Subject& subject, const Stream& stream, const cases::Case& test);

}  // namespace tenon::conformance
