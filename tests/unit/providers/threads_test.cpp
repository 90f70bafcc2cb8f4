// One and two threads give equal bits, and concurrent launches of one primitive do not disturb each other.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/providers/wide_work.h"

namespace tenon::provider {
namespace {

TEST(Threads, OneAndTwoGiveEqualBits) {
  OpenProvider one("cpu", {}, 1);
  OpenProvider two("cpu", {}, 2);
  for (const Work& work : wide_work()) {
    const auto operands = operands_of(work);
    EXPECT_TRUE(equal_bits(result_of(one, work, operands), result_of(two, work, operands))) << work.name;
  }
}

TEST(Threads, ConcurrentLaunchesGiveTheBitsOfOne) {
  OpenProvider provider("cpu", {}, 2);
  for (const Work& work : wide_work()) {
    const auto operands = operands_of(work);
    const std::vector<float> expected = result_of(provider, work, operands);
    std::vector<std::thread> threads;
    threads.reserve(4);
    std::vector<std::vector<float>> results(4);
    for (auto& result : results) {
      threads.emplace_back([&] {
        for (int round = 0; round < 3; ++round) result = result_of(provider, work, operands);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) EXPECT_TRUE(equal_bits(result, expected)) << work.name;
  }
}

}  // namespace
}  // namespace tenon::provider
