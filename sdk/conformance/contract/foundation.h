// The foundation of every test that submits work: streams are in order, and an event that is seen means that the work
// before it is done. If that does not hold, a test of something else fails and would blame the wrong rule.
#pragma once

#include "sdk/conformance/subject.h"

namespace tenon::conformance {

// `failure`, or a failure of the foundation in its place with `failure` as its consequence. Looks once per process, at
// the first failure whose rule is about the results of work.
Status explain(const Target& target, Status failure);

}  // namespace tenon::conformance
