#include "sdk/conformance/report.h"

#include <gtest/gtest.h>

namespace tenon::conformance {
namespace {

const RunInfo info = {"lib/libtenon_foo.so", "foo 1.0.0", "tenon conform 'lib/libtenon_foo.so'", 1.5};
const conformance::Test time_out = {"events/time_out", "S03", "A wait ends.", {}};
const conformance::Test relu = {"primitives/unary/relu/f32/vector", "P14", "", {}};

std::vector<Row> rows() {
  return {{&time_out, {Outcome::crashed, "it died <here> & \"now\" (rule X01).", "oops\n", 3, false, "X01"}},
          {&relu, {}}};
}

TEST(Report, AFailureEndsWithTheLineThatRunsItAlone) {
  const std::string text = failure_text(rows()[0], info);
  EXPECT_EQ(text.find("CRASHED events/time_out\n"), 0u) << text;
  EXPECT_TRUE(text.ends_with("    tenon conform 'lib/libtenon_foo.so' --case events/time_out\n")) << text;
  EXPECT_NE(text.find("oops"), std::string::npos);
  EXPECT_NE(text.find("    held to: A wait ends (rule S03).\n"), std::string::npos) << text;
}

TEST(Report, TheTableCountsByKindAndOutcome) {
  const std::string text = table_text(rows(), info);
  EXPECT_NE(text.find("\nprimitives/unary "), std::string::npos) << text;
  EXPECT_NE(
      text.find("1 passed, 0 failed, 1 crashed, 0 hung, 0 skipped, 0 expected failure, 0 unexpected pass in 1.500 s"),
      std::string::npos)
      << text;
}

TEST(Report, WhatIsNotClaimedIsToldFromWhatIsSkipped) {
  Finding unclaimed{Outcome::skipped, "unsupported: no f16.", {}, 1, true};
  std::vector<Row> all = {{&time_out, unclaimed}, {&relu, unclaimed}};
  EXPECT_NE(table_text(all, info).find(" 2 skipped (not claimed), 0 expected"), std::string::npos);
  all[0].finding.not_claimed = false;
  EXPECT_NE(table_text(all, info).find(" 2 skipped (1 not claimed), 0 expected"), std::string::npos);
  EXPECT_NE(json_text(all, info).find("\"not claimed\": 1"), std::string::npos) << json_text(all, info);
  all[1].finding.not_claimed = false;
  EXPECT_NE(table_text(all, info).find(" 2 skipped, 0 expected"), std::string::npos);
}

TEST(Report, JUnitIsEscaped) {
  const std::string text = junit_text(rows(), info);
  EXPECT_NE(text.find("tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"0\""), std::string::npos) << text;
  EXPECT_NE(text.find("it died &lt;here&gt; &amp; &quot;now&quot;"), std::string::npos) << text;
  EXPECT_EQ(text.find("<here>"), std::string::npos);
}

TEST(Report, JsonNamesRuleOutcomeAndCommand) {
  const std::string text = json_text(rows(), info);
  for (const char* part :
       {"\"rule\": \"X01\"", "\"outcome\": \"crashed\"", "--case events/time_out", "\"passed\": 1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

}  // namespace
}  // namespace tenon::conformance
