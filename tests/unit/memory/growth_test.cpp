// The memory of a process after long use of the cpu device: ten thousand shapes, ten thousand threads, and a rest.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/kernel/kernel_cache.h"
#include "core/ops/ops.h"

namespace tenon {
namespace {

constexpr int kRounds = 10000;
constexpr int kEarly = 2000;
constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int read = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  EXPECT_EQ(read, 2);
  return resident * 4096;
}

// One buffer holds the values in turn, so that vectors of the test do not fragment the measured heap.
Tensor filled(std::mt19937& random, const Dims& dims, Device device) {
  static std::vector<float> buffer(2 * 100 * 100);
  const std::span<float> values = std::span(buffer).first(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = static_cast<float>(random() % 1000) / 500 - 1;
  return Tensor::from<float>(values, dims, device);
}

// From the early rounds to the last, resident memory may grow by a tenth at most.
template <class Round>
void expect_level(Round round) {
  uint64_t early = 0;
  for (int i = 1; i <= kRounds; ++i) {
    round(i);
    if (i == kEarly) early = resident_bytes();
  }
  const uint64_t late = resident_bytes();
  EXPECT_LE(static_cast<double>(late), 1.1 * static_cast<double>(early))
      << early / kMiB << " MiB after " << kEarly << " rounds, " << late / kMiB << " after " << kRounds;
}

TEST(MemoryGrowth, LevelsOffOverTenThousandShapes) {
  const Device device("cpu");
  std::mt19937 random(5);
  uint64_t most_cached = 0;
  expect_level([&](int i) {
    const int shape = i * 7919 % kRounds;  // each shape once, large and small ones mixed
    const int64_t rows = 1 + shape % 100;
    const int64_t columns = 1 + shape / 100;
    const Tensor x = filled(random, {rows, columns}, device);
    const Tensor y = matmul(relu(x), filled(random, {columns, 1 + (rows + columns) % 7}, device));
    ASSERT_EQ(y.dims()[0], rows);
    const Tensor image = filled(random, {1, 2, rows, columns}, device);
    const Tensor z = conv2d(image, filled(random, {3, 2, 1, 1}, device));
    ASSERT_EQ(add(z, z).elements(), 3 * rows * columns);
    if (i % 500 != 0) return;
    const KernelCacheStats kernels = kernel_cache_stats(device.state());
    EXPECT_LE(kernels.bytes, kernels.byte_limit);
    most_cached = std::max(most_cached, device.memory_stats().cached);
  });
  EXPECT_LE(most_cached, std::max(64 * kMiB, device.memory_stats().peak));
}

TEST(MemoryGrowth, LevelsOffOverTenThousandThreads) {
  const Device device("cpu");
  const Tensor a = Tensor::from<float>(std::vector<float>(64 * 64, 0.5f), {64, 64}, device);
  expect_level([&](int i) {
    std::thread([&] {
      const Tensor wide = i % 16 == 0 ? Tensor::empty({1 << 16}, DType::f32, device) : a;
      EXPECT_EQ(matmul(relu(a), a).elements(), 64 * 64);
      EXPECT_EQ(add(wide, wide).elements(), wide.elements());
    }).join();
  });
}

TEST(MemoryGrowth, AnIdleProcessGivesMemoryBack) {
  const Device device("cpu");
  device.trim();
  const uint64_t before = resident_bytes();
  {
    std::vector<Tensor> held;
    for (int i = 0; i < 8; ++i) held.push_back(ones({16 << 20}, DType::f32, device));
    EXPECT_GE(resident_bytes(), before + 500 * kMiB);
  }
  const auto given_back = [&] { return resident_bytes() <= before + 16 * kMiB; };
  for (int i = 0; i < 200 && !given_back(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(given_back()) << (resident_bytes() - before) / kMiB
                            << " MiB are still held after ten seconds without a call";
  EXPECT_LE(device.memory_stats().cached, 16 * kMiB);
}

}  // namespace
}  // namespace tenon
