// The importer returns a result or throws a tenon::Error, and nothing else.
#include "sdk/onnx/border.h"

#include <gtest/gtest.h>

#include <vector>

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {
namespace {

template <class F>
Status status_of(F work) {
  try {
    at_border(work);
  } catch (const Error& error) {
    return error.status();
  }
  return {};
}

TEST(Border, LetsResultsAndErrorsPass) {
  EXPECT_EQ(at_border([] { return 7; }), 7);
  const Status status = status_of([] { throw Error(Code::not_found, "There is none.", "Make one."); });
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.message(), "There is none.");
  EXPECT_EQ(status.remedy(), "Make one.");
}

TEST(Border, TellsOfMissingMemory) {
  EXPECT_EQ(status_of([] { throw std::bad_alloc(); }).code(), Code::out_of_host_memory);
  EXPECT_EQ(status_of([] { std::vector<int>().reserve(size_t{1} << 62); }).code(), Code::out_of_host_memory);
}

TEST(Border, TurnsEveryOtherExceptionIntoAnError) {
  const Status status = status_of([] { return std::vector<int>().at(3); });
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_NE(status.message().find("_M_range_check"), std::string::npos) << status.message();
  EXPECT_EQ(status_of([] { throw UnknownValue(3); }).code(), Code::internal);
}

}  // namespace
}  // namespace tenon::onnx
