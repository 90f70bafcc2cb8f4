// The claims of a provider, read from a text file. Its lines:
//
//   supports unary/relu/f32/*          each of these cases must run: "unsupported" is a failure
//   supports nothing                   the provider claims no primitive
//   fails events/time_out why          a known defect: its failure is expected, and a pass is reported
//   skips primitives/*/long why        not run
//   # ...
//
// A name may contain *, ? and [], which also match /. The prefix "primitives/" may be omitted before a kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "primitives/status/status.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

bool matches(const std::string& pattern, const std::string& name);

// Returns "Did you mean ...?" for a pattern that matches no test, and how to list all names.
std::string suggestion(const std::string& pattern, const std::vector<Test>& tests);

struct Expectation {
  enum class Kind : uint8_t { supports, fails, skips } kind;
  std::string pattern, reason;
};

class Expectations {
 public:
  // Errors: a malformed line, with its number.
  static Result<Expectations> parse(std::string_view text, const std::string& file);
  static Result<Expectations> read(const std::string& file);

  bool given() const { return given_; }
  bool claims_nothing() const { return claims_nothing_; }
  // Returns the line that skips the test `name`, or NULL.
  const Expectation* skip(const std::string& name) const;
  // Returns `finding`, changed by the claims: for example, an expected failure.
  Finding judge(const std::string& name, Finding finding) const;
  // Errors: a pattern that matches no test, because of a spelling mistake or a removed test.
  Status check(const std::vector<Test>& tests) const;

 private:
  const Expectation* find(Expectation::Kind kind, const std::string& name) const;

  bool given_ = false, claims_nothing_ = false;
  std::string file_;
  std::vector<Expectation> lines_;
};

}  // namespace tenon::conformance
