// Work in flight on several devices at once, and errors that move from one device to another.
#include <thread>

#include "primitives/text/format.h"
#include "tests/e2e/devices/fixture.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {
namespace {

// A tensor on some device, and its expected values. The host computes them by the same exact operations.
struct Known {
  Tensor tensor;
  std::vector<float> values;  // row-major
};

// A random program over all devices: copies, ops that are exact in f32, views, and writes in place.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (const Known& known : pool_) check(known);
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  Device any_device() { return all_devices()[below(all_devices().size())]; }
  Known& any() { return pool_[below(pool_.size())]; }

  void check(const Known& known) {
    ASSERT_EQ(known.tensor.to_host<float>(), known.values) << "on " << known.tensor.device().spelling();
  }

  void add_new() {
    const int64_t rows = static_cast<int64_t>(below(9)) + 1, columns = static_cast<int64_t>(below(40)) + 1;
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (float& value : values) value = static_cast<float>(static_cast<int64_t>(below(2001)) - 1000);
    const Device on = any_device();
    poison_free_memory(on, static_cast<int64_t>(values.size()) * 4);
    pool_.push_back({Tensor::from<float>(values, {rows, columns}, on), values});
  }

  Known transposed(const Known& from) {
    Known to{transpose(from.tensor, 0, 1), {}};
    const int64_t rows = from.tensor.dims()[0], columns = from.tensor.dims()[1];
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) to.values.push_back(from.values[static_cast<size_t>(r * columns + c)]);
    }
    return to;
  }

  Known sliced(const Known& from) {
    const int64_t rows = from.tensor.dims()[0], columns = from.tensor.dims()[1];
    const auto begin = static_cast<int64_t>(below(static_cast<uint64_t>(columns)));
    const auto step = static_cast<int64_t>(below(3)) + 1;
    Known to{slice(from.tensor, 1, begin, columns, step), {}};
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = begin; c < columns; c += step)
        to.values.push_back(from.values[static_cast<size_t>(r * columns + c)]);
    }
    return to;
  }

  template <class F>
  static Known mapped(const Known& from, Tensor tensor, F f) {
    Known to{std::move(tensor), from.values};
    for (float& value : to.values) value = f(value);
    return to;
  }

  void step() {
    if (pool_.empty() || below(8) == 0) return add_new();
    const Known from = any();
    switch (below(9)) {
      case 0:
      case 1: pool_.push_back({from.tensor.to(any_device()), from.values}); break;
      case 2: pool_.push_back(mapped(from, relu(from.tensor), [](float x) { return x > 0 ? x : 0; })); break;
      case 3: pool_.push_back(transposed(from)); break;
      case 4: pool_.push_back(sliced(from)); break;
      case 5:
        pool_.push_back(
            mapped(from, add(from.tensor, from.tensor.to(from.tensor.device())), [](float x) { return x + x; }));
        break;
      case 6: overwrite(from); break;
      case 7: check(from); break;
      default: pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(below(pool_.size()))); break;
    }
    if (pool_.size() > 10) pool_.erase(pool_.begin());
  }

  // Overwrites a tensor of the program from a tensor on another device.
  void overwrite(const Known& from) {
    Tensor target = Tensor::empty(from.tensor.dims(), DType::f32, any_device());
    copy_(target, from.tensor);
    if (below(2) == 0) {
      copy_(target, relu(from.tensor));
      pool_.push_back(mapped(from, target, [](float x) { return x > 0 ? x : 0; }));
    } else {
      pool_.push_back({target, from.values});
    }
  }

  std::mt19937_64 random_;
  std::vector<Known> pool_;
};

class Flight : public ::testing::Test {
 protected:
  Flight() { all_devices(); }
  ~Flight() override {
    fakes::async_control().delay_us = 0;
    fakes::async_control().early = false;
    fakes::async_control().fail_launch = -1;
    settle_all();
    EXPECT_EQ(violation(), "");
  }
};

TEST_F(Flight, RandomProgramsOverAllDevices) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    fakes::async_control().delay_us = seed % 3 * 100;
    fakes::async_control().early = seed % 2 == 1;
    Program(seed).run(80);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Flight, SeveralThreadsEachWithItsOwnProgram) {
  fakes::async_control().delay_us = 50;
  std::vector<std::thread> threads;
  for (uint64_t seed : {101, 102, 103, 104}) threads.emplace_back([seed] { Program(seed).run(300); });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Flight, DevicesDoNotWaitForEachOther) {
  fakes::async_control().delay_us = 200;
  const Device one = device("async:0"), two = device("async:1");
  const std::vector<float> values = {-1, 2, -3, 4};
  Tensor x = Tensor::from<float>(values, {4}, one), y = Tensor::from<float>(values, {4}, two);
  for (int i = 0; i < 300; ++i) {
    x = relu(x);
    y = relu(y);
    if (i % 50 == 49) std::swap(x = x.to(two), y = y.to(one));
    if (i % 50 == 49) {
      x = x.to(one);
      y = y.to(two);
    }
  }
  EXPECT_EQ(x.to_host<float>(), (std::vector<float>{0, 2, 0, 4}));
  EXPECT_EQ(y.to_host<float>(), (std::vector<float>{0, 2, 0, 4}));
}

// The error of copying `tensor` to `to` or of reading the copy; empty if there is none.
std::string error_on(const Tensor& tensor, Device to) {
  try {
    std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
    tensor.to(to).copy_to_host(bytes.data());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST_F(Flight, ErrorsCrossWithOpAndDevice) {
  for (int64_t elements : {int64_t{5}, int64_t{5} << 18}) {
    for (bool known : {false, true}) {
      if (known && elements > 5) continue;
      const std::vector<float> values(static_cast<size_t>(elements), 2.0f);
      const Tensor good = Tensor::from<float>(values, {elements}, device("async:0"));
      fakes::async_control().delay_us = 200;
      fakes::async_control().fail_launch = 0;
      const Tensor bad = relu(good);
      if (known) {
        try {
          device("async:0").synchronize();
          ADD_FAILURE() << "the launch was told to fail";
        } catch (const Error&) {
        }
      }
      for (Device to : all_devices()) {
        SCOPED_TRACE(to.spelling() + (known ? " known" : " in flight"));
        const std::string error = error_on(bad, to);
        EXPECT_NE(error.find("relu"), std::string::npos) << error;
        EXPECT_NE(error.find("async:0"), std::string::npos) << error;
        EXPECT_EQ(error_on(good, to), "") << "what does not depend on it is well";
      }
      fakes::async_control().delay_us = 0;
      settle_all();
    }
  }
}

TEST_F(Flight, AWholeOverwriteFromAnotherDeviceHeals) {
  for (int64_t elements : {int64_t{7}, int64_t{5} << 18}) {
    const std::vector<float> twos(static_cast<size_t>(elements), 2.0f), threes(static_cast<size_t>(elements), 3.0f);
    fakes::async_control().fail_launch = 0;
    const Tensor bad = relu(Tensor::from<float>(twos, {elements}, device("async:0")));
    Tensor target = bad.to(device("async:1"));
    EXPECT_NE(error_on(target, device("cpu")), "");
    settle_all();
    for (Device from : all_devices()) {
      if (from == target.device()) continue;
      SCOPED_TRACE(from.spelling());
      copy_(target, Tensor::from<float>(threes, {elements}, from));
      EXPECT_EQ(target.to_host<float>(), threes);
    }
  }
}

}  // namespace
}  // namespace tenon::testing
