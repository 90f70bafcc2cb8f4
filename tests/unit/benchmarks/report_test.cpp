#include "benchmarks/report/report.h"

#include <gtest/gtest.h>

namespace tenon::bench {
namespace {

// How a report treats its arguments and rows. The sides of a row take no time and count their runs.
class ReportTest : public testing::Test {
 protected:
  // Runs `rows` with `options`. Returns the printed text.
  std::string print(const std::vector<Row>& rows, std::vector<std::string> options) {
    // Google Benchmark keeps the options of an earlier test.
    options.insert(options.begin(), {"bench", "--benchmark_filter=all", "--benchmark_list_tests=false",
                                     "--benchmark_repetitions=3", "--benchmark_min_time=0.00001"});
    std::vector<char*> arguments;
    for (std::string& option : options) arguments.push_back(option.data());
    arguments.push_back(nullptr);
    int count = static_cast<int>(options.size());
    Report report(&count, arguments.data());
    left_ = count;
    testing::internal::CaptureStdout();
    report.run(rows);
    status_ = report.status();
    return testing::internal::GetCapturedStdout();
  }

  Row row(const std::string& name, std::string wrong = {}) {
    Row made{name, {"ours", [this](int64_t n) { ours_ += n; }}, {{"peer", [this](int64_t n) { peer_ += n; }}}};
    made.check = [this, wrong] {
      EXPECT_EQ(ours_, 0) << "the answer was checked after something had been timed";
      return wrong;
    };
    return made;
  }

  int64_t ours_ = 0, peer_ = 0;
  int status_ = -1;
  int left_ = 0;
};

TEST_F(ReportTest, AWrongAnswerVoidsTheRowAndNothingIsTimed) {
  EXPECT_NE(print({row("relu", "it is wrong")}, {}).find("| void: it is wrong"), std::string::npos);
  EXPECT_EQ(status_, 1);
  EXPECT_EQ(ours_ + peer_, 0);
}

TEST_F(ReportTest, BothSidesRunAndTheRatioIsPrinted) {
  const std::string text = print({row("relu")}, {});
  EXPECT_NE(text.find("| ours: "), std::string::npos) << text;
  EXPECT_NE(text.find("| peer: "), std::string::npos) << text;
  EXPECT_NE(text.find("| ratio "), std::string::npos) << text;
  EXPECT_GT(ours_, 0);
  EXPECT_GT(peer_, 0);
  EXPECT_EQ(status_, 0);
}

TEST_F(ReportTest, ARowOverItsBarFails) {
  Row over = row("relu");
  over.most_ns = 1e-9;
  EXPECT_NE(print({over}, {}).find("| over\n"), std::string::npos);
  EXPECT_EQ(status_, 1);
}

TEST_F(ReportTest, TheFilterChoosesRowsAndSides) {
  const std::string text = print({row("relu"), row("add", "is never asked")}, {"--benchmark_filter=relu/pe"});
  EXPECT_EQ(text.find("add"), std::string::npos) << text;
  EXPECT_NE(text.find("| peer: "), std::string::npos) << text;
  EXPECT_EQ(ours_, 0);
  EXPECT_EQ(status_, 0);
}

TEST_F(ReportTest, ABurstIsExactAndSettledAfterEachBatch) {
  int settled = 0;
  Row burst = row("relu");
  burst.peers.clear();
  burst.burst = 7;
  burst.settle = [&] { ++settled; };
  print({burst}, {});
  EXPECT_EQ(ours_, 3 * 7);
  EXPECT_EQ(settled, 3);
}

TEST_F(ReportTest, ListingTimesNothing) {
  print({row("relu", "is never asked")}, {"--benchmark_list_tests"});
  EXPECT_EQ(ours_ + peer_, 0);
  EXPECT_EQ(status_, 0);
}

TEST_F(ReportTest, JsonIsOneLinePerRow) {
  const std::string text = print({row("relu", "it is wrong")}, {"--benchmark_format=json"});
  EXPECT_EQ(text, "{\"row\":\"relu\",\"verdict\":\"void\",\"wrong\":\"it is wrong\"}\n");
}

TEST_F(ReportTest, TheProgramsOwnWordsAreLeft) {
  print({}, {"sample:0"});
  EXPECT_EQ(left_, 2);
}

TEST_F(ReportTest, AnUnknownOptionEndsTheProgram) {
  EXPECT_EXIT(print({}, {"--wrong"}), testing::ExitedWithCode(2), "the option --wrong is unknown");
}

}  // namespace
}  // namespace tenon::bench
