#include "core/device/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/device/process.h"
#include "tests/unit/scratch_folder.h"

namespace tenon {
namespace {

TEST(Trace, HoldsTheSpansBetweenItsBeginAndItsEnd) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/trace.json";
  const std::string where = "toy:0";
  { const TraceScope before("before", "launch", where); }
  trace_begin(path);
  { const TraceScope within("within", "launch", where); }
  const Status ended = trace_end();
  { const TraceScope after("after", "launch", where); }
  EXPECT_TRUE(ended.ok()) << ended.message();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\"within\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"before\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"after\""), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with('{') && text.ends_with("]}\n")) << text;
  EXPECT_TRUE(trace_end().ok()) << "there is no trace, and nothing to write";
}

TEST(Trace, SaysThatItsFileCannotBeOpened) {
  trace_begin("/nowhere/trace.json");
  const Status status = trace_end();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("/nowhere/trace.json cannot be opened"), std::string::npos) << status.message();
}

TEST(Trace, SaysThatItsFileCannotBeWritten) {
  trace_begin("/dev/full");
  const Status status = trace_end();
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_NE(status.message().find("writing /dev/full failed"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace tenon
