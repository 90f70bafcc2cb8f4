#include "benchmarks/report/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tenon::bench {
namespace {

Row row_with(double bar, double slack_ns, double most_ns) {
  Row row{"relu", {"ours", {}}, {{"slow", {}}, {"fast", {}}}};
  row.bar = bar;
  row.slack_ns = slack_ns;
  row.most_ns = most_ns;
  return row;
}

// The medians are 30, 100 and 60.
const Samples samples{{10, 30, 50, 20, 40}, {100, 100, 100, 100, 100}, {50, 60, 50, 80, 80}};

TEST(Summary, HoldsOursAgainstTheFastestPeer) {
  const Summary summary = summarize(row_with(0, 0, 0), samples);
  ASSERT_TRUE(summary.compared);
  EXPECT_DOUBLE_EQ(summary.ratio.median, 30.0 / 60.0);
  EXPECT_DOUBLE_EQ(summary.over_ns, -30);
  EXPECT_EQ(summary.verdict, Verdict::none);
}

TEST(Summary, SpreadOfTheRatioPairsSamplesInTheirOrder) {
  // The ratios are 0.2, 0.5, 1, 0.25, 0.5, and their quartiles 0.25 and 0.5.
  EXPECT_DOUBLE_EQ(summarize(row_with(0, 0, 0), samples).ratio.spread, 0.25);
}

TEST(Summary, SpreadOfASideIsTheDistanceBetweenQuartiles) {
  const Timing timing = summarize({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(timing.median, 30);
  EXPECT_DOUBLE_EQ(timing.spread, 20);
}

TEST(Summary, EachKindOfBarIsHeldAtItsLimitAndNotBeyond) {
  EXPECT_EQ(summarize(row_with(0.5, 0, 0), samples).verdict, Verdict::ok);
  EXPECT_EQ(summarize(row_with(0.499, 0, 0), samples).verdict, Verdict::over);
  EXPECT_EQ(summarize(row_with(0, 0, 30), samples).verdict, Verdict::ok);
  EXPECT_EQ(summarize(row_with(0, 0, 29.9), samples).verdict, Verdict::over);
  const Samples slower{{110}, {200}, {100}};
  EXPECT_EQ(summarize(row_with(0, 10, 0), slower).verdict, Verdict::ok);
  EXPECT_EQ(summarize(row_with(0, 9.9, 0), slower).verdict, Verdict::over);
}

TEST(Summary, ASideThatWasNotMeasuredIsNotCompared) {
  const Summary without_peers = summarize(row_with(0.5, 0, 0), {{30}, {}, {}});
  EXPECT_FALSE(without_peers.compared);
  EXPECT_EQ(without_peers.verdict, Verdict::none);
  const Summary without_fast = summarize(row_with(0.5, 0, 0), {{30}, {100}, {}});
  EXPECT_DOUBLE_EQ(without_fast.ratio.median, 0.3);
  const Summary without_ours = summarize(row_with(0.5, 0, 0), {{}, {100}, {}});
  EXPECT_FALSE(without_ours.compared);
  ASSERT_EQ(without_ours.labels.size(), 1u);
  EXPECT_EQ(without_ours.labels[0], "slow");
}

TEST(Summary, TextNamesSidesRatioSpreadBarAndVerdict) {
  EXPECT_EQ(to_text(summarize(row_with(0.4, 0, 0), samples)),
            "relu                               | ours: 30.0 ns +-20.0 | slow: 100.0 ns +-0.0 | fast: 60.0 ns +-30.0 | "
            "ratio 0.500 +-0.250 | bar 0.400 | over");
  EXPECT_EQ(to_text(void_row(row_with(0, 0, 0), "it is wrong")),
            "relu                               | void: it is wrong");
}

TEST(Summary, JsonSaysTheSame) {
  const auto line = nlohmann::json::parse(to_json(summarize(row_with(0.4, 0, 0), samples)));
  EXPECT_EQ(line["row"], "relu");
  EXPECT_EQ(line["verdict"], "over");
  EXPECT_EQ(line["ratio"], 0.5);
  EXPECT_EQ(line["ratio_spread"], 0.25);
  EXPECT_EQ(line["bar"], 0.4);
  ASSERT_EQ(line["sides"].size(), 3u);
  EXPECT_EQ(line["sides"][2]["label"], "fast");
  EXPECT_EQ(line["sides"][2]["median_ns"], 60);
  const auto wrong = nlohmann::json::parse(to_json(void_row(row_with(0, 0, 0), "a \"quoted\" word")));
  EXPECT_EQ(wrong["verdict"], "void");
  EXPECT_EQ(wrong["wrong"], "a \"quoted\" word");
}

}  // namespace
}  // namespace tenon::bench
