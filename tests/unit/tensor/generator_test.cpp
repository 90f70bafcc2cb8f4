// Generator: ranges of random numbers, and ops that draw numbers from the default generator.
#include "core/tensor/generator.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "core/ops/ops.h"
#include "core/tensor/device.h"

namespace tenon {
namespace {

TEST(Generator, GivesEachBlockToOneThreadAlone) {
  Generator generator(7);
  std::vector<std::set<uint64_t>> taken(4);
  std::vector<std::thread> threads;
  for (std::set<uint64_t>& mine : taken) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const RandomRange range = generator.reserve(3);
        EXPECT_EQ(range.seed, 7U);
        for (uint64_t block = 0; block < 3; ++block) mine.insert(range.offset + block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const std::set<uint64_t>& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 12000U);
  EXPECT_EQ(generator.state().offset, 12000U);
}

TEST(Generator, SeedsBringTheSameNumbersAgain) {
  const auto numbers = [] {
    std::vector<float> all = rand({5, 3}, DType::f32, Device("cpu")).to_host<float>();
    const std::vector<float> more = randn({7}, DType::f32, Device("cpu")).to_host<float>();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  manual_seed(12345);
  const std::vector<float> first = numbers();
  const std::vector<float> second = numbers();
  manual_seed(12345);
  EXPECT_EQ(numbers(), first);
  EXPECT_EQ(numbers(), second);
  EXPECT_NE(first, second);
  manual_seed(12346);
  EXPECT_NE(numbers(), first);
}

TEST(Generator, AStateThatIsSetBackBringsTheSameMask) {
  const Tensor x = ones({64}, DType::f32, Device("cpu"));
  const RandomRange state = default_generator().state();
  const std::vector<float> mask = dropout(x, 0.5).to_host<float>();
  EXPECT_EQ(default_generator().state().offset, state.offset + 16);
  default_generator().set_state(state);
  EXPECT_EQ(dropout(x, 0.5).to_host<float>(), mask);
}

}  // namespace
}  // namespace tenon
