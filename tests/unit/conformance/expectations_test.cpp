#include "sdk/conformance/expectations.h"

#include <gtest/gtest.h>

namespace tenon::conformance {
namespace {

Expectations parsed(const char* text) { return Expectations::parse(text, "foo.expect").value(); }
Finding failed() { return {Outcome::failed, "it was wrong (rule P14).", {}, 1}; }
Finding unsupported() { return {Outcome::skipped, "unsupported: no f16.", {}, 1}; }

TEST(Expectations, UnsupportedIsAFailureOnlyWhereSupportWasClaimed) {
  const Expectations expectations = parsed("# relu alone\nsupports unary/relu/f32/*\n");
  EXPECT_EQ(expectations.judge("primitives/unary/relu/f32/vector", unsupported()).outcome, Outcome::failed);
  EXPECT_EQ(expectations.judge("primitives/unary/relu/f16/vector", unsupported()).outcome, Outcome::skipped);
  EXPECT_EQ(expectations.judge("primitives/unary/relu/f32/vector", {}).outcome, Outcome::passed);
}

TEST(Expectations, AKnownDefectMayFailAndMustNotPass) {
  const Expectations expectations = parsed("fails events/* the driver is old\n");
  for (Outcome outcome : {Outcome::failed, Outcome::crashed, Outcome::hung}) {
    Finding finding = failed();
    finding.outcome = outcome;
    EXPECT_EQ(expectations.judge("events/time_out", finding).outcome, Outcome::expected_failure);
  }
  EXPECT_EQ(expectations.judge("events/time_out", {}).outcome, Outcome::unexpected_pass);
  EXPECT_EQ(expectations.judge("events/time_out", {Outcome::skipped, "no events.", {}, 0}).outcome, Outcome::skipped);
  EXPECT_EQ(expectations.judge("streams/on_threads", failed()).outcome, Outcome::failed);
}

TEST(Expectations, ATestThatIsSkippedHasItsReason) {
  const Expectations expectations = parsed("skips primitives/*/long takes minutes here\n");
  ASSERT_NE(expectations.skip("primitives/unary/relu/f32/long"), nullptr);
  EXPECT_EQ(expectations.skip("primitives/unary/relu/f32/long")->reason, "takes minutes here");
  EXPECT_EQ(expectations.skip("primitives/unary/relu/f32/one"), nullptr);
}

TEST(Expectations, ClaimingNothingIsAClaim) {
  EXPECT_TRUE(parsed("supports nothing\n").claims_nothing());
  EXPECT_FALSE(parsed("supports unary/*\n").claims_nothing());
  EXPECT_FALSE(Expectations().given());
}

TEST(Expectations, ALineThatSaysNothingIsNamed) {
  for (const char* text : {"relu", "supports", "fails events/time_out", "skips events/*  ", "expects relu"}) {
    const auto bad = Expectations::parse(std::string("# first\n") + text, "foo.expect");
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_EQ(bad.status().code(), Code::invalid_argument);
    EXPECT_EQ(bad.status().message().find("foo.expect:2: "), 0u) << bad.status().message();
  }
}

TEST(Expectations, APatternThatMatchesNoTestIsAMistake) {
  const std::vector<conformance::Test> tests = {{"primitives/unary/relu/f32/vector", "P14", "", {}}};
  EXPECT_TRUE(parsed("supports unary/*").check(tests).ok());
  EXPECT_EQ(parsed("supports unry/*").check(tests).message(), "foo.expect: 'unry/*' is the name of no test.");
}

TEST(Expectations, AWordOrAMisspeltNameLeadsToTheTest) {
  const std::vector<conformance::Test> tests = {{"primitives/unary/relu/f32/vector", "P14", "", {}},
                                                {"primitives/matmul/f32/odd", "P14", "", {}},
                                                {"primitives/matmul/f64/odd", "P14", "", {}}};
  const std::string list = " `tenon conform --list` prints all names.";
  EXPECT_EQ(suggestion("relu", tests), "Did you mean 'primitives/unary/relu/f32/vector'?" + list);
  EXPECT_EQ(suggestion("odd", tests),
            "Did you mean 'primitives/matmul/f32/odd', or all 2 that hold the word, '*odd*'?" + list);
  EXPECT_EQ(suggestion("matmull/f32/od", tests), "Did you mean 'matmul/f32/odd'?" + list);
  EXPECT_EQ(suggestion("xyzzy", tests), list.substr(1));
}

}  // namespace
}  // namespace tenon::conformance
