// The foundation of every test that submits work: streams run in order, and once an event is seen, the work before it
// is done. If this does not hold, other tests fail and would name the wrong rule.
#pragma once

#include "sdk/conformance/subject.h"

namespace tenon::conformance {

// Returns `failure`, or a failure of the foundation with `failure` as its consequence. Checks the foundation once per
// process, at the first failure of a rule about results of work.
Status explain(const Target& target, Status failure);

}  // namespace tenon::conformance
