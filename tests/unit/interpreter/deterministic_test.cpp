// Deterministic algorithms: the bits of results do not depend on the number of threads, on earlier work, or on when
// kernels become ready.
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/background/background.h"
#include "core/compile/compile.h"
#include "core/device/deterministic.h"
#include "core/device/device_state.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/primitive/primitive_cache.h"
#include "loader/loader.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

Tensor mixed_floats(const Dims& dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(engine);
  return Tensor::from<float>(data, dims, Device("cpu"));
}

struct Sample {
  std::string name;
  std::function<Tensor()> run;
};

// Sums that are long enough for several threads to share them, and ops that add at positions that occur more than once.
const std::vector<Sample>& samples() {
  static const std::vector<Sample> all{
      {"sum", [] { return sum(mixed_floats({1 << 20}, 1)); }},
      {"mean of columns",
       [] {
         return mean(mixed_floats({4096, 96}, 2), {0});
       }},
      {"var", [] { return var(mixed_floats({1 << 19}, 3)); }},
      {"norm",
       [] {
         return sqrt(sum(square(mixed_floats({3, 1 << 18}, 4)), {1}));
       }},
      {"softmax",
       [] {
         return softmax(mixed_floats({64, 5000}, 5), 1);
       }},
      {"layer_norm",
       [] {
         return layer_norm(mixed_floats({64, 5000}, 6), {5000});
       }},
      {"cumsum", [] { return cumsum(mixed_floats({1 << 18}, 7), 0); }},
      {"long product",
       [] {
         return matmul(mixed_floats({5, 60000}, 8), mixed_floats({60000, 7}, 9));
       }},
      {"product with a vector",
       [] {
         return matmul(mixed_floats({3, 300000}, 30), mixed_floats({300000, 1}, 31));
       }},
      {"square product",
       [] {
         return matmul(mixed_floats({300, 700}, 10), mixed_floats({700, 200}, 11));
       }},
      {"conv",
       [] {
         return conv2d(mixed_floats({2, 16, 40, 40}, 12), mixed_floats({24, 16, 3, 3}, 13));
       }},
      {"conv of many channels",
       [] {
         return conv2d(mixed_floats({1, 900, 7, 7}, 14), mixed_floats({8, 900, 3, 3}, 15));
       }},
      {"gradients of a conv",
       [] {
         Tensor x = mixed_floats({4, 8, 30, 30}, 16), w = mixed_floats({12, 8, 3, 3}, 17);
         x.requires_grad_();
         w.requires_grad_();
         sum(square(conv2d(x, w))).backward();
         return concat({reshape(x.grad(), {-1}), reshape(w.grad(), {-1})}, 0);
       }},
      {"gradient of a weight, of many channels",
       [] {
         Tensor w = mixed_floats({40, 8, 3, 3}, 28);
         w.requires_grad_();
         sum(square(conv2d(mixed_floats({4, 8, 40, 40}, 29), w))).backward();
         return w.grad();
       }},
      {"gradient of a weight, of many pixels",
       [] {
         Tensor w = mixed_floats({2, 1, 3, 3}, 26);
         w.requires_grad_();
         sum(square(conv2d(mixed_floats({1, 1, 200, 200}, 27), w))).backward();
         return w.grad();
       }},
      {"gradients of a layer norm",
       [] {
         Tensor x = mixed_floats({2000, 96}, 18), w = mixed_floats({96}, 19);
         x.requires_grad_();
         w.requires_grad_();
         sum(square(layer_norm(x, {96}, w))).backward();
         return concat({reshape(x.grad(), {-1}), w.grad()}, 0);
       }},
      {"scatter_add",
       [] {
         std::vector<int64_t> at(40000);
         for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i * 7919 % 13);
         const Tensor index = Tensor::from<int64_t>(at, {40000}, Device("cpu"));
         return scatter_add(mixed_floats({13}, 20), 0, index, mixed_floats({40000}, 21));
       }},
      {"attention",
       [] {
         const Tensor q = mixed_floats({1, 4, 200, 64}, 22), k = mixed_floats({1, 4, 900, 64}, 23);
         return attention(q, k, mixed_floats({1, 4, 900, 64}, 24));
       }},
      {"a compiled function",
       [] {
         const auto norm = compile([](const Tensor& x) { return x * rsqrt(mean(square(x), {1}, true) + 1e-5); });
         const Tensor x = mixed_floats({64, 3000}, 25);
         const Tensor first = norm(x);
         finish_compiling();
         return concat({first, norm(x)}, 0);
       }},
  };
  return all;
}

// FNV-1a over the bytes of the results, a line for each sample.
std::string bits() {
  std::string text;
  for (const Sample& sample : samples()) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const float value : sample.run().to_host<float>()) {
      std::array<unsigned char, 4> bytes;
      std::memcpy(bytes.data(), &value, 4);
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
    }
    text += fmt::format("{} {:016x}\n", sample.name, hash);
  }
  return text;
}

// The test below, in a separate process that prints its bits. oneDNN splits long sums among threads in its code for
// AVX2, not in its code for AVX-512.
std::string bits_apart(const std::string& environment) {
  const std::string command = fmt::format(
      "env PRINT_BITS=1 ONEDNN_MAX_CPU_ISA=AVX2 TENON_FUSE=on {} /proc/{}/exe "
      "--gtest_filter=Deterministic.GivesTheSameBitsOnAnyNumberOfThreads 2>&1",
      environment, getpid());
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::array<char, 4096> buffer;
  while (const size_t read = fread(buffer.data(), 1, buffer.size(), pipe)) said.append(buffer.data(), read);
  const int code = pclose(pipe);
  const size_t begin = said.find("BITS\n"), end = said.find("END\n");
  if (code != 0 || begin == std::string::npos || end == std::string::npos) return "failed: " + said;
  return said.substr(begin + 5, end - begin - 5);
}

TEST(Deterministic, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (std::getenv("PRINT_BITS") != nullptr) {
    std::printf("BITS\n%sEND\n", bits().c_str());
    return;
  }
  const std::string one = bits_apart("TENON_DETERMINISTIC=on TENON_THREADS=1");
  ASSERT_EQ(one.find("failed"), std::string::npos) << one;
  EXPECT_EQ(bits_apart("TENON_DETERMINISTIC=on TENON_THREADS=2"), one);
  EXPECT_EQ(bits_apart("TENON_DETERMINISTIC=on TENON_THREADS=3"), one);
}

TEST(Deterministic, IsSetByTheProgramAndWaitsForKernels) {
  EXPECT_FALSE(are_deterministic_algorithms_enabled());
  EXPECT_EQ(compiling(Compiling::beside), Compiling::beside);
  use_deterministic_algorithms(true);
  EXPECT_TRUE(are_deterministic_algorithms_enabled());
  EXPECT_EQ(compiling(Compiling::beside), Compiling::wait);
  EXPECT_EQ(compiling({}), Compiling::wait);
  use_deterministic_algorithms(false);
  EXPECT_FALSE(are_deterministic_algorithms_enabled());
}

// A primitive that was created without the demand is not used for it.
TEST(Deterministic, ChoosesAnewForCallsThatWereMetBefore) {
  const Tensor a = mixed_floats({7, 113}, 1), b = mixed_floats({113, 5}, 2);
  const auto primitives = [&] {
    matmul(a, b);
    return primitive_cache_stats(a.device().state()).primitives;
  };
  const uint64_t before = primitives();
  EXPECT_EQ(primitives(), before);
  use_deterministic_algorithms(true);
  EXPECT_EQ(primitives(), before + 1);
  EXPECT_EQ(primitives(), before + 1);
  use_deterministic_algorithms(false);
  EXPECT_EQ(primitives(), before + 1);
}

}  // namespace
}  // namespace tenon
