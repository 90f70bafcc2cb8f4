#include "primitives/text/progress.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Progress, ShowsHowMuchIsDone) {
  EXPECT_EQ(Progress::line("loading", 0, 4, 1.2, 80), "[>                       ]   0 %  loading, 1 s");
  EXPECT_EQ(Progress::line("loading", 1, 4, 2, 80), "[======>                 ]  25 %  loading, 2 s");
  EXPECT_EQ(Progress::line("loading", 4, 4, 2, 80), "[========================] 100 %  loading, 2 s");
  EXPECT_EQ(Progress::line("loading", 9, 4, 2, 80), "[========================] 100 %  loading, 2 s");
}

TEST(Progress, ShowsOnlyTheTimeWithoutATotal) { EXPECT_EQ(Progress::line("loading", 0, 0, 61, 80), "loading, 61 s"); }

TEST(Progress, FitsIntoTheTerminal) {
  EXPECT_EQ(Progress::line("loading", 0, 0, 61, 8), "loading");
  EXPECT_EQ(Progress::line("loading", 0, 0, 61, 0), "");
}

// The tests' stderr is not a terminal.
TEST(Progress, IsSilentElsewhere) {
  testing::internal::CaptureStderr();
  {
    Progress progress("working", 2);
    progress.at(1, "working on");
    progress.clear();
    Progress other("waiting");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tenon
