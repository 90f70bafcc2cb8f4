#include "sdk/cli/onnx_test/workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>

#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

std::map<size_t, CaseResult> run_all(size_t count, const WorkerOptions& options,
                                     const std::function<CaseResult(size_t)>& run) {
  std::map<size_t, CaseResult> results;
  run_in_children(count, options, run,
                  [&](size_t i, const CaseResult& result) { EXPECT_TRUE(results.emplace(i, result).second) << i; });
  EXPECT_EQ(results.size(), count);
  return results;
}

TEST(Workers, EveryCaseIsRunOnce) {
  const auto results = run_all(50, {3, 20}, [](size_t i) {
    return CaseResult{i % 2 == 0 ? Verdict::passed : Verdict::skipped, fmt::format("case {}", i), 1, {i, 0, 0, 2}};
  });
  for (const auto& [i, result] : results) {
    EXPECT_EQ(result.verdict, i % 2 == 0 ? Verdict::passed : Verdict::skipped);
    EXPECT_EQ(result.sentence, fmt::format("case {}", i));
    EXPECT_EQ(result.launches, (RungCounts{i, 0, 0, 2}));
  }
}

TEST(Workers, ACrashCostsItsOwnCaseOnly) {
  const auto results = run_all(20, {2, 20}, [](size_t i) {
    if (i == 3) raise(SIGKILL);
    if (i == 11) _exit(7);
    return CaseResult{Verdict::passed, "", 0, {}};
  });
  for (const auto& [i, result] : results)
    EXPECT_EQ(result.verdict, i == 3 || i == 11 ? Verdict::failed : Verdict::passed) << i;
  EXPECT_EQ(results.at(3).sentence, "its process crashed (signal 9, Killed)");
  EXPECT_EQ(results.at(11).sentence, "its process crashed (exit code 7)");
}

TEST(Workers, ACaseThatDoesNotEndIsStopped) {
  const auto results = run_all(6, {2, 0.3}, [](size_t i) {
    while (i == 2) pause();
    return CaseResult{Verdict::passed, "", 0, {}};
  });
  for (const auto& [i, result] : results) EXPECT_EQ(result.verdict, i == 2 ? Verdict::failed : Verdict::passed) << i;
  EXPECT_EQ(results.at(2).sentence, "it did not end within 0.3 s");
}

}  // namespace
}  // namespace tenon::cli
