// The memory of a process after long use of the cpu device: ten thousand shapes, ten thousand threads, and a pause.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/ops/ops.h"
#include "core/primitive/primitive_cache.h"

namespace tenon {
namespace {

constexpr int kRounds = 10000;
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

// From the first fifth of the rounds to the last, resident memory may grow by at most a tenth plus `more` bytes.
template <class Round>
void expect_level(Round round, int rounds = kRounds, const std::function<void()>& settle = {}, uint64_t more = 0) {
  uint64_t early = 0;
  for (int i = 1; i <= rounds; ++i) {
    round(i);
    if (i != rounds / 5 && i != rounds) continue;
    if (settle) settle();
    if (i == rounds / 5) early = resident_bytes();
  }
  const uint64_t late = resident_bytes();
  EXPECT_LE(static_cast<double>(late), 1.1 * static_cast<double>(early) + static_cast<double>(more))
      << early / kMiB << " MiB after " << rounds / 5 << " rounds, " << late / kMiB << " after " << rounds;
}

// One op of each family of primitives, on shapes derived from the sides of a matrix.
struct Family {
  const char* name;
  std::function<void(const Tensor&)> call;
};
const std::vector<Family> kFamilies = {
    {"elementwise", [](const Tensor& x) { where(gt(x, 0), exp(x), clamp(x, -1, 1)); }},
    {"copies",
     [](const Tensor& x) {
       concat({clone(x.t()), cast(cast(x.t(), DType::f16), DType::f32)}, 0);
     }},
    {"movement",
     [](const Tensor& x) {
       flip(pad(tile(x, {2, 1}), {1, 2}), {1});
     }},
    {"reductions", [](const Tensor& x) { add(sum(x, 0), std::get<0>(max(x, 0))); }},
    {"norms",
     [](const Tensor& x) {
       softmax(x, 1);
       layer_norm(x, x.dim(1));
       rms_norm(x, x.dim(1));
       group_norm(unsqueeze(x, 0), 1);
     }},
    {"products", [](const Tensor& x) { matmul(x, x.t()); }},
    {"convolutions",
     [](const Tensor& x) {
       const Tensor image = reshape(x, {1, 1, x.dim(0), x.dim(1)});
       max_pool2d(conv2d(image, ones({2, 1, 3, 3}), {}, 1, 1), 2, 1, 1);
       avg_pool2d(image, 1);
       interpolate(image, {x.dim(0) + 1, x.dim(1) + 2}, {}, "bilinear");
     }},
    {"attention",
     [](const Tensor& x) {
       const Tensor rows = reshape(x, {1, 1, x.dim(0), x.dim(1)});
       scaled_dot_product_attention(rows, rows, rows, {}, true);
     }},
    {"indices",
     [](const Tensor& x) {
       const Tensor places = argsort(select(x, 1, 0));
       index_add(index_select(x, 0, places), 0, places, x);
       index_put(x, {places}, Tensor::from(1.0f));
       one_hot(places, x.dim(0));
     }},
    {"orders",
     [](const Tensor& x) {
       cumsum(std::get<0>(sort(x, 1)), 0);
       topk(x, 1, 0);
       nonzero(gt(x, 0));
       unique(x);
     }},
    {"random numbers", [](const Tensor& x) { dropout(randn_like(x), 0.5); }},
    {"transforms", [](const Tensor& x) { fft_irfft(fft_rfft(x), x.dim(1)); }},
    {"linear algebra", [](const Tensor& x) { linalg_solve(add(matmul(x, x.t()), eye(x.dim(0))), x); }},
    {"recurrent",
     [](const Tensor& x) {
       const TensorList params{full({8, x.dim(1)}, 0.1), full({8, 2}, 0.2)};
       lstm(unsqueeze(x, 1), zeros({1, 1, 2}), zeros({1, 1, 2}), params, false);
     }},
    {"gradients",
     [](const Tensor& x) {
       Tensor y = clone(x);
       y.requires_grad_(true);
       sum(tanh(matmul(y, y.t()))).backward();
     }},
};

// The number of shapes for each family: FAMILY_SHAPES, or 500.
int shapes_of_a_family() {
  const char* given = std::getenv("FAMILY_SHAPES");
  return given != nullptr ? std::atoi(given) : 500;
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
    const PrimitiveCacheStats primitives = primitive_cache_stats(device.state());
    EXPECT_LE(primitives.bytes, primitives.byte_limit);
    most_cached = std::max(most_cached, device.memory_stats().cached);
  });
  EXPECT_LE(most_cached, std::max(64 * kMiB, device.memory_stats().peak));
}

TEST(MemoryGrowth, LevelsOffInEveryFamily) {
  const Device device("cpu");
  std::mt19937 random(6);
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const int shapes = shapes_of_a_family();
    const int sides = static_cast<int>(std::ceil(std::sqrt(shapes)));
    const int step = std::max(1, 138 / sides);
    expect_level(
        [&](int i) {
          const int shape = i * 7919 % shapes;
          family.call(filled(random, {step * (1 + shape % sides), step * (1 + shape / sides)}, device));
        },
        shapes,
        [&] {
          clear_primitive_cache(device.state());  // so that a few shapes do not fill it
          device.trim();
        },
        8 * kMiB);  // threads and libraries keep some
  }
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
