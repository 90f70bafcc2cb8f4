#include "primitives/status/status.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Status(Code::invalid_argument, "odd", "give an even number");
  return value / 2;
}

Result<int> quarter(int value) {
  TENON_ASSIGN_OR_RETURN(const int first, half(value));
  TENON_ASSIGN_OR_RETURN(const int second, half(first));
  return second;
}

Status all_even(int value) {
  TENON_RETURN_IF_ERROR(half(value).status());
  return {};
}

TEST(Status, OkCarriesNothing) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(sizeof(status), sizeof(std::shared_ptr<int>));
}

TEST(Status, FailureKeepsCodeSentenceAndRemedy) {
  const Status status(Code::busy, "The stream is busy.", "Retry.");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::busy);
  EXPECT_EQ(status.message(), "The stream is busy.");
  EXPECT_EQ(status.remedy(), "Retry.");
}

TEST(Status, ContextAddsALineAndKeepsTheRest) {
  const Status status = Status(Code::busy, "The stream is busy.", "Retry.").with_context("  while running node 14");
  EXPECT_EQ(status.message(), "The stream is busy.\n  while running node 14");
  EXPECT_EQ(status.remedy(), "Retry.");
  EXPECT_TRUE(Status().with_context("  nowhere").ok());
}

TEST(Status, TheSameContextIsAddedOnce) {
  const Status status =
      Status(Code::busy, "The stream is busy.").with_context("  on cpu:0").with_context("  in node 1");
  EXPECT_EQ(status.with_context("  on cpu:0").message(), "The stream is busy.\n  on cpu:0\n  in node 1");
  // The text of a reason is not context.
  const Status quoting = Status(Code::busy, "It says:\n  on cpu:0").with_context("  on cpu:0");
  EXPECT_EQ(quoting.message(), "It says:\n  on cpu:0\n  on cpu:0");
}

TEST(Status, TheSubjectIsAFieldNotText) {
  const Status status(Subject{"exp"}, Code::unsupported, "i32 has no exponentials.", "Cast it.");
  EXPECT_EQ(status.message(), "exp: i32 has no exponentials.");
  EXPECT_EQ(status.with_subject("exp_").message(), "exp_: i32 has no exponentials.");
  const Status outer = status.with_context("  in line 3").with_caller("softmax");
  EXPECT_EQ(outer.message(), "softmax: exp: i32 has no exponentials.\n  in line 3");
  EXPECT_EQ(outer.sentence(), "softmax: exp: i32 has no exponentials.");
  EXPECT_EQ(outer.parts().subject, "softmax");
  EXPECT_EQ(outer.parts().reason, "exp: i32 has no exponentials.");
  EXPECT_EQ(outer.remedy(), "Cast it.");
  EXPECT_EQ(outer.code(), Code::unsupported);
}

TEST(Status, ArgumentsAreApartFromTheReason) {
  const Status status(Failure{.code = Code::unsupported,
                              .subject = "add",
                              .arguments = "(f64 [2], f64 [2])",
                              .reason = "cannot run on toy:0: no f64."});
  EXPECT_EQ(status.message(), "add(f64 [2], f64 [2]) cannot run on toy:0: no f64.");
  EXPECT_EQ(status.parts().reason, "cannot run on toy:0: no f64.");
  EXPECT_EQ(status.with_caller("sum").message(), "sum: add(f64 [2], f64 [2]) cannot run on toy:0: no f64.");
}

TEST(Status, TheRuleEndsTheSentence) {
  const Status status =
      Status(Code::internal, "It came early.\n  in event 3").with_rule("S04").with_context("  on toy:0");
  EXPECT_EQ(status.message(), "It came early (rule S04).\n  in event 3\n  on toy:0");
  EXPECT_EQ(status.sentence(), "It came early (rule S04).");
  EXPECT_EQ(status.with_rule("S05").message(), "It came early (rule S05).\n  in event 3\n  on toy:0");
  EXPECT_EQ(status.with_rule({}).message(), "It came early.\n  in event 3\n  on toy:0");
  EXPECT_EQ(status.with_caller("wait").message(), "wait: It came early (rule S04).\n  in event 3\n  on toy:0");
}

TEST(Status, TheRemedyBeginsWithTheSuggestion) {
  const Status status(Failure{.code = Code::not_found, .reason = "No 'cpuu'.", .suggestion = "cpu"});
  EXPECT_EQ(status.remedy(), "Did you mean cpu?");
  const Status both(
      Failure{.code = Code::not_found, .reason = "No 'cpuu'.", .suggestion = "cpu", .advice = "Names are lower case."});
  EXPECT_EQ(both.remedy(), "Did you mean cpu? Names are lower case.");
}

TEST(Status, ChangingSuccessGivesSuccess) {
  EXPECT_TRUE(Status().with_subject("add").ok());
  EXPECT_TRUE(Status().with_caller("add").ok());
  EXPECT_TRUE(Status().with_rule("E01").ok());
  EXPECT_EQ(Status().sentence(), "");
  EXPECT_EQ(Status().parts().code, Code::ok);
}

TEST(Result, HoldsAValueOrItsFailure) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).status().message(), "odd");
  EXPECT_EQ(all_even(3).remedy(), "give an even number");
  EXPECT_TRUE(all_even(4).ok());
}

TEST(Result, MovesWhatItHolds) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(Status, EveryCodeHasAName) {
  for (int code = EP_STATUS_OK; code <= EP_STATUS_INTERNAL; ++code) {
    EXPECT_NE(code_name(static_cast<Code>(code)), "unknown status") << code;
  }
  EXPECT_EQ(code_name(static_cast<Code>(99)), "unknown status");
}

}  // namespace
}  // namespace tenon
