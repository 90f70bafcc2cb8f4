// Tensors on a device with layouts of its own, the asynchronous fake: values stay opaque between ops, and reading the
// bytes gives those of a plain run.
#include "core/interpreter/opaque_operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "core/device/device_state.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "core/vm/opaque.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"

namespace tenon {
namespace {

using fakes::async_control;
using Program = std::function<Tensor(const TensorList&)>;

class Opaque : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool registered = [] {
      loader::register_provider("opaque", fakes::async_query);
      return true;
    }();
    static_cast<void>(registered);
  }
  void TearDown() override {
    close();
    EXPECT_EQ(async_control().violation(), "");
    async_control().reset();
  }

  // The device with the layouts of `seed`; 0: it has none.
  Device open(uint64_t seed, bool mapped = false) {
    close();
    async_control().reset();
    async_control().memory = uint64_t{64} << 20;
    async_control().reference = true;
    async_control().delay_us = 50;
    async_control().layout_seed = seed;
    async_control().images = seed % 2 == 1;
    async_control().mapped = mapped;
    opened_ = true;
    return Device("opaque:0");
  }
  void close() {
    if (std::exchange(opened_, false)) retire("opaque");
  }

  static Tensor random_tensor(const Dims& dims, uint32_t seed, Device device) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(0.5f, 2.0f);
    std::vector<float> data(static_cast<size_t>(element_count(dims)));
    for (float& value : data) value = values(random);
    return Tensor::from<float>(data, dims, device);
  }

  static std::vector<uint32_t> bits(const Tensor& tensor) {
    std::vector<uint32_t> all;
    for (float value : tensor.to_host<float>()) all.push_back(std::bit_cast<uint32_t>(value));
    return all;
  }

  // Runs `code` on inputs of `dims` on a plain device and under `seeds` draws. Returns the number of values read in
  // layouts.
  uint64_t expect_same(const std::vector<Dims>& dims, const Program& code, uint64_t seeds) {
    std::vector<uint32_t> wanted;
    uint64_t read = 0;
    for (uint64_t seed = 0; seed <= seeds; ++seed) {
      const Device device = open(seed);
      TensorList inputs;
      for (size_t i = 0; i < dims.size(); ++i)
        inputs.push_back(random_tensor(dims[i], static_cast<uint32_t>(i), device));
      for (int round = 0; round < 2; ++round) {
        const std::vector<uint32_t> found = bits(code(inputs));
        if (seed == 0) wanted = found;
        EXPECT_EQ(found, wanted) << "seed " << seed;
      }
      read += async_control().opaque_reads;
      if (seed == 0) {
        EXPECT_EQ(read, 0u);
      }
    }
    return read;
  }

  // A device with an opaque tensor on it: the first draw for which the result of one op is opaque.
  std::pair<Device, Tensor> opaque_tensor(const Dims& dims, bool mapped = false) {
    for (uint64_t seed = 1;; ++seed) {
      const Device device = open(seed, mapped);
      Tensor made = exp(random_tensor(dims, 1, device));
      if (vm::layout_of(made.impl()->storage)) return {device, made};
    }
  }

  static uint64_t conversions(const std::vector<ExecutionEntry>& entries, std::string_view way) {
    return static_cast<uint64_t>(std::count_if(entries.begin(), entries.end(), [&](const ExecutionEntry& entry) {
      return entry.op == kLayoutCopy && entry.reason.starts_with(way);
    }));
  }

  bool opened_ = false;
};

TEST_F(Opaque, ChainsOfOpsHaveTheBitsOfPlainRuns) {
  const Program code = [](const TensorList& in) {
    const Tensor sum = relu(add(matmul(in[0], in[1]), in[2]));
    return softmax(mul(sum, exp(neg(sum))), -1);
  };
  EXPECT_GT(expect_same({Dims{4, 6}, Dims{6, 5}, Dims{5}}, code, 20), 0u);
}

TEST_F(Opaque, ChannelsLastTensorsHaveTheBitsOfPlainRuns) {
  const Program code = [](const TensorList& in) {
    const Tensor last = contiguous(in[0], "channels_last");
    const Tensor wave = relu(conv2d(last, in[1], {}, 1, 1));
    return concat({avg_pool2d(add(wave, last), 2), max_pool2d(wave, 2)}, 1);
  };
  EXPECT_GT(expect_same({Dims{2, 3, 6, 4}, Dims{3, 3, 3, 3}}, code, 20), 0u);
}

TEST_F(Opaque, ViewsSeeTheBytes) {
  const Program code = [](const TensorList& in) {
    const Tensor wave = exp(in[0]);
    const Tensor part = contiguous(slice(permute(wave, {1, 0}), 0, 1, 5, 2));
    return add(reshape(part, {8}), select(reshape(neg(wave), {3, 8}), 0, 2));
  };
  EXPECT_GT(expect_same({Dims{4, 6}}, code, 20), 0u);
}

TEST_F(Opaque, WritesInPlaceAreSeenByEverybody) {
  const Program code = [](const TensorList& in) {
    Tensor wave = exp(in[0]);
    Tensor before = neg(wave);  // the operand `wave` may be stored in a layout
    relu_(neg_(wave));
    Tensor row = select(wave, 0, 1);
    add_(row, in[1]);
    Tensor given = sqrt(in[0]);
    exp_out(given, in[0]);
    return add(add(mul(wave, before), given), exp(wave));
  };
  EXPECT_GT(expect_same({Dims{4, 6}, Dims{6}}, code, 20), 0u);
}

TEST_F(Opaque, AResultIsReadInItsLayoutWithoutConversion) {
  uint64_t without = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Device device = open(seed);
    const Tensor input = random_tensor({3, 5}, 2, device);
    ExecutionScope scope;
    const Tensor last = neg(exp(input));
    last.wait();
    const std::vector<ExecutionEntry> entries = scope.take();
    without += async_control().opaque_reads > 0 && conversions(entries, "") == 0;
  }
  EXPECT_GT(without, 0u);
}

TEST_F(Opaque, WaitingConvertsNothingAndReadingConvertsOnce) {
  auto [device, value] = opaque_tensor({3, 5});
  ExecutionScope scope;
  value.wait();
  EXPECT_EQ(conversions(scope.take(), ""), 0u);
  bits(value);
  bits(value);
  EXPECT_EQ(conversions(scope.take(), "from"), 1u);
}

TEST_F(Opaque, AnOperandThatIsReadOftenIsConvertedOnce) {
  uint64_t to = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Device device = open(seed);
    const Tensor weight = random_tensor({6, 5}, 3, device);
    ExecutionScope scope;
    for (int i = 0; i < 4; ++i) bits(matmul(random_tensor({4, 6}, 4, device), weight));
    const uint64_t all = conversions(scope.take(), "to");
    EXPECT_LE(all, 5u) << "seed " << seed;  // the weight once, its partner four times
    to += all;
  }
  EXPECT_GT(to, 0u);
}

TEST_F(Opaque, OtherDevicesAndTheHostGetTheBytes) {
  auto [device, value] = opaque_tensor({3, 5});
  const std::vector<uint32_t> wanted = bits(neg(neg(value)));
  EXPECT_EQ(bits(value.to(Device("opaque:1"))), wanted);
  std::vector<uint32_t> seen(15);
  value.access(Access::read, [&](void* data) { std::memcpy(seen.data(), data, 60); });
  device.synchronize();
  EXPECT_EQ(seen, wanted);
}

TEST_F(Opaque, AWrittenAccessReplacesTheValue) {
  auto [device, value] = opaque_tensor({3, 5});
  value.access(Access::read_write, [](void* data) {
    for (int i = 0; i < 15; ++i) static_cast<float*>(data)[i] = static_cast<float>(i);
  });
  const std::vector<float> negated = neg(value).to_host<float>();
  EXPECT_EQ(negated[7], -7.0f);
}

TEST_F(Opaque, AnAddressThatWasGivenOutForbidsCopiesOfTheBytes) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Device device = open(seed, true);
    const Tensor value = exp(random_tensor({3, 5}, 7, device));
    auto* data = static_cast<float*>(value.data());
    ASSERT_NE(data, nullptr);
    bits(neg(value));
    data[7] = 40;  // the owner of the address writes, while nothing runs
    EXPECT_EQ(neg(value).to_host<float>()[7], -40.0f) << "seed " << seed;
  }
}

TEST_F(Opaque, PoisonGoesThroughConversions) {
  uint64_t told = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Device device = open(seed);
    const Tensor source = random_tensor({4, 6}, 5, device);
    const int64_t bad[] = {1, 9};
    const Tensor indices = Tensor::from<int64_t>(bad, {2}, device);
    const Tensor taken = exp(neg(index_select(source, 0, indices)));
    try {
      bits(reshape(taken, {12}));
    } catch (const Error& error) {
      ++told;
      EXPECT_NE(std::string(error.what()).find("9"), std::string::npos) << error.what();
    }
    try {
      synchronize();
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(told, 12u);
}

TEST_F(Opaque, ARefusedLaunchHasNoReaders) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Device device = open(seed);
    const Tensor source = random_tensor({4, 6}, 5, device);
    bits(source);
    async_control().fail_launch = 0;
    async_control().hold = true;  // so that everything is submitted before the failure is known
    Tensor last = source;
    for (int i = 0; i < 5; ++i) last = exp(neg(last));
    async_control().hold = false;
    EXPECT_THROW(bits(last), Error);
    async_control().fail_launch = -1;
    try {
      device.synchronize();
    } catch (const Error&) {
    }
    EXPECT_EQ(async_control().violation(), "") << "seed " << seed;
  }
}

TEST_F(Opaque, TwoThreadsMayReadOneValue) {
  auto [device, value] = opaque_tensor({16, 16});
  const std::vector<uint32_t> wanted = bits(neg(value));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&value = value, &wanted] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(bits(neg(value)), wanted);
        bits(value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Opaque, MemoryOfValuesComesBack) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Device device = open(seed);
    const auto live = [&] { return device.state()->allocator->stats().live; };
    const uint64_t before = live();
    {
      const Tensor input = random_tensor({32, 33}, 6, device);
      for (int i = 0; i < 50; ++i) bits(exp(neg(input)));
    }
    device.synchronize();
    EXPECT_EQ(live(), before) << "seed " << seed;
    device.state()->allocator->trim();
  }
}

}  // namespace
}  // namespace tenon
