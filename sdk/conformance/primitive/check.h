// Holds a provider against the reference: one case of tests/cases, in every way it may be run.
#pragma once

#include "sdk/conformance/subject.h"
#include "tests/cases/case.h"

namespace tenon::conformance {

// Asks for the terms on which the provider takes `desc`. Code::unsupported where it does not.
Result<ep_support_info> ask_support(Subject& subject, const ep_primitive_desc& desc);

// What the terms ask of the host: scalars in the descriptor, better aligned operands.
ep_primitive_desc on_terms(const cases::Case& test, const ep_primitive_desc& asked, const ep_support_info& terms);

// Runs `test` with static dims, in place where its kind allows it, and with dims and strides given at launch where the
// provider says it can. Skipped where the provider does not support it.
Status check_case(Subject& subject, const Stream& stream, const cases::Case& test);
// The same; what the host noticed meanwhile stays with it.
Status run_case(Subject& subject, const Stream& stream, const cases::Case& test);

}  // namespace tenon::conformance
