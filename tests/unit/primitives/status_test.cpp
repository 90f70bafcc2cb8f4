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
