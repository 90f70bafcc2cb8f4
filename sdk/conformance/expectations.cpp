#include "sdk/conformance/expectations.h"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::conformance {

bool matches(const std::string& pattern, const std::string& name) {
  if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  const bool begins_wild = pattern.find_first_of("*?[") == 0;
  return !begins_wild && fnmatch(fmt::format("primitives/{}", pattern).c_str(), name.c_str(), 0) == 0;
}

std::string suggestion(const std::string& pattern, const std::vector<Test>& tests) {
  const std::string around = fmt::format("*{}*", pattern);
  std::vector<std::string> names, holding;
  for (const Test& test : tests) {
    names.push_back(test.name);
    if (test.name.starts_with("primitives/")) names.push_back(test.name.substr(test.name.find('/') + 1));
    if (matches(around, test.name)) holding.push_back(test.name);
  }
  const std::string list = " `tenon conform --list` prints all names.";
  if (!holding.empty()) {
    const std::string first = fmt::format("Did you mean '{}'", holding.front());
    if (holding.size() == 1) return fmt::format("{}?{}", first, list);
    return fmt::format("{}, or all {} that hold the word, '{}'?{}", first, holding.size(), around, list);
  }
  const std::string nearest = nearest_word(pattern, names);
  return nearest.empty() ? list.substr(1) : fmt::format("Did you mean '{}'?{}", nearest, list);
}

Result<Expectations> Expectations::parse(std::string_view text, const std::string& file) {
  Expectations parsed;
  parsed.given_ = true;
  parsed.file_ = file;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string verb, pattern, reason;
    if (!(words >> verb) || verb[0] == '#') continue;
    words >> pattern >> std::ws;
    std::getline(words, reason);
    using Kind = Expectation::Kind;
    if (verb == "supports" && pattern == "nothing") {
      parsed.claims_nothing_ = true;
    } else if (verb == "supports" && !pattern.empty()) {
      parsed.lines_.push_back({Kind::supports, pattern, reason});
    } else if ((verb == "fails" || verb == "skips") && !reason.empty()) {
      parsed.lines_.push_back({verb == "fails" ? Kind::fails : Kind::skips, pattern, reason});
    } else {
      return Status(Code::invalid_argument, fmt::format("{}:{}: '{}' is not an expectation.", file, number, line),
                    "Write 'supports PATTERN', 'supports nothing', 'fails PATTERN WHY' or 'skips PATTERN WHY'.");
    }
  }
  return parsed;
}

Result<Expectations> Expectations::read(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return Status(Code::not_found, fmt::format("the file of expectations '{}' cannot be read.", file));
  std::stringbuf text;
  stream >> &text;
  return parse(text.view(), file);
}

const Expectation* Expectations::find(Expectation::Kind kind, const std::string& name) const {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Expectation& line) {
    return line.kind == kind && matches(line.pattern, name);
  });
  return found == lines_.end() ? nullptr : &*found;
}

const Expectation* Expectations::skip(const std::string& name) const { return find(Expectation::Kind::skips, name); }

Finding Expectations::judge(const std::string& name, Finding finding) const {
  if (const Expectation* fails = find(Expectation::Kind::fails, name)) {
    if (is_bad(finding.outcome)) {
      finding.outcome = Outcome::expected_failure;
      finding.sentence += fmt::format("\n  expected: {}", fails->reason);
    } else if (finding.outcome == Outcome::passed) {
      finding.outcome = Outcome::unexpected_pass;
      finding.sentence = fmt::format("it was expected to fail ({}): take the line out of {}.", fails->reason, file_);
    }
    return finding;
  }
  const bool unsupported = finding.outcome == Outcome::skipped && name.starts_with("primitives/");
  if (unsupported && find(Expectation::Kind::supports, name)) {
    finding.outcome = Outcome::failed;
    finding.rule = "P12";
    finding.sentence += fmt::format("\n  though {} says it is supported (rule P12)", file_);
  }
  return finding;
}

Status Expectations::check(const std::vector<Test>& tests) const {
  for (const Expectation& line : lines_) {
    const bool any =
        std::any_of(tests.begin(), tests.end(), [&](const Test& t) { return matches(line.pattern, t.name); });
    if (any) continue;
    return Status(Code::invalid_argument, fmt::format("{}: '{}' is the name of no test.", file_, line.pattern),
                  suggestion(line.pattern, tests));
  }
  return {};
}

}  // namespace tenon::conformance
