// A test of the kit, and what came of it.
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
  std::string rule;   // of ep_api/README.md, named where the failure names none
  std::string claim;  // what it holds the provider to
  // Runs in a child process. Ok, skipped(...), or a failure.
  std::function<Status()> run;
  // Runs in one process with the others that share; alone if it crashes or hangs there.
  bool shares_process = false;
};

enum class Outcome : uint8_t { passed, failed, crashed, hung, skipped, expected_failure, unexpected_pass };
constexpr int outcome_count = 7;
std::string_view outcome_name(Outcome outcome);

struct Finding {
  Outcome outcome = Outcome::passed;
  std::string sentence;  // why it is not passed
  std::string output;    // what was printed meanwhile, cut
  double milliseconds = 0;
  bool not_claimed = false;  // skipped because the provider says that it cannot do it
};

inline bool is_bad(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::crashed || outcome == Outcome::hung ||
         outcome == Outcome::unexpected_pass;
}

// The rule a sentence names last, "E01" of "... (rule E01).", or empty.
std::string rule_in(std::string_view sentence);

// Runs every test and calls done(number, finding) here, in the order of `tests`. The process must have no threads and
// must not have loaded the provider: each child does so by itself. A test that takes longer than `time_limit` seconds
// has hung.
void run_in_children(const std::vector<Test>& tests, double time_limit,
                     const std::function<void(size_t, const Finding&)>& done);

// The same in this process, for a debugger: nothing is caught and nothing is timed.
void run_here(const std::vector<Test>& tests, const std::function<void(size_t, const Finding&)>& done);

}  // namespace tenon::conformance
