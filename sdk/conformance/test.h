// A test of the conformance kit, and its finding.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::conformance {

struct Test {
  std::string name;   // "events/never_recorded", "primitives/unary/relu/f32/vector"
  std::string rule;   // rule of ep_api/README.md, for failures that name no rule
  std::string claim;  // the claim that the test checks
  // Runs in a child process. Returns ok, skipped(...) or a failure.
  std::function<Status()> run;
  // The test shares one process with other such tests. If it crashes or hangs there, it runs again alone.
  bool shares_process = false;
  // The test runs at the end of every shared process and checks that process.
  bool closes_process = false;
};

enum class Outcome : uint8_t { passed, failed, crashed, hung, skipped, expected_failure, unexpected_pass };
constexpr int outcome_count = 7;
std::string_view outcome_name(Outcome outcome);

struct Finding {
  Outcome outcome = Outcome::passed;
  std::string sentence;  // reason of a failure or a skip
  std::string output;    // what the test printed, shortened
  double milliseconds = 0;
  bool not_claimed = false;  // skipped because the provider does not claim it
  std::string rule = {};     // the rule of a failure, which the sentence names too
};

inline bool is_bad(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::crashed || outcome == Outcome::hung ||
         outcome == Outcome::unexpected_pass;
}

// Ends this process with `status` as the finding of the running test, without running destructors: work in flight may
// still use the test's objects. Other tests that share the process continue in a new one. A process that a test has
// forked ends with inner_failure. In run_here the kit ends.
[[noreturn]] void end_process(const Status& status);
constexpr int inner_failure = 9;  // exit code

// Runs every test in child processes, and calls done(number, finding) in this process, in the order of `tests`. This
// process must have no threads and must not have loaded the provider; each child loads it. A test that
// makes no call of the provider for `time_limit` seconds counts as hung; a slow test that makes calls does not.
void run_in_children(const std::vector<Test>& tests, double time_limit,
                     const std::function<void(size_t, const Finding&)>& done);

// Runs every test in this process, for a debugger. Catches nothing and has no time limit.
void run_here(const std::vector<Test>& tests, const std::function<void(size_t, const Finding&)>& done);

}  // namespace tenon::conformance
