// What a provider says of itself beforehand, in a text file of lines:
//
//   supports unary/relu/f32/*          each of these must run: "unsupported" is a failure
//   supports nothing                   it claims no primitive, and knows it
//   fails events/time_out why          a known defect: it failing is expected, it passing is news
//   skips primitives/*/long why        not run
//   # ...
//
// A name may hold *, ? and [], which match / too; a leading "primitives/" may be left out before a letter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "primitives/status/status.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

bool matches(const std::string& pattern, const std::string& name);

// What may have been meant by a pattern that matches no test: "Did you mean ...?", and where all names are.
std::string suggestion(const std::string& pattern, const std::vector<Test>& tests);

struct Expectation {
  enum class Kind : uint8_t { supports, fails, skips } kind;
  std::string pattern, reason;
};

class Expectations {
 public:
  // Errors: a line that is none of the above, with its number.
  static Result<Expectations> parse(std::string_view text, const std::string& file);
  static Result<Expectations> read(const std::string& file);

  bool given() const { return given_; }
  bool claims_nothing() const { return claims_nothing_; }
  // The line that says `name` is not to be run; null if none does.
  const Expectation* skip(const std::string& name) const;
  // What becomes of `finding` in the light of the file.
  Finding judge(const std::string& name, Finding finding) const;
  // A pattern that is the name of no test: a spelling mistake, or a test that is gone.
  Status check(const std::vector<Test>& tests) const;

 private:
  const Expectation* find(Expectation::Kind kind, const std::string& name) const;

  bool given_ = false, claims_nothing_ = false;
  std::string file_;
  std::vector<Expectation> lines_;
};

}  // namespace tenon::conformance
