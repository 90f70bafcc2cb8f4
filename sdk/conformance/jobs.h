// Jobs: several tests at once, each in a child process of its own as in test.h.
#pragma once

#include <functional>
#include <vector>

#include "sdk/conformance/test.h"

namespace tenon::conformance {

// Runs every test as run_in_children does, but `jobs` of them at a time, and calls done(number, finding) in the order
// of `tests` all the same. Tests that share a process are dealt out in parts, and each part ends with the tests that
// close it; of the findings of such a test the first bad one counts.
void run_in_jobs(const std::vector<Test>& tests, double time_limit, int jobs,
                 const std::function<void(size_t, const Finding&)>& done);

}  // namespace tenon::conformance
