// Gradients that are reduced while backward goes on: what is begun, in which messages, and that nobody sees a
// difference but in time.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/autograd/autograd.h"
#include "core/device/deterministic.h"
#include "core/global/communicator.h"
#include "core/ops/operators.h"
#include "primitives/text/format.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

Communicator& world() { return *value_or_throw(Communicator::world()); }
Communicator& line() { return *Placement::all(devices()).line(0); }

// Numbers whose sums depend on the order.
Tensor random_numbers(const Dims& dims, uint32_t seed, DType dtype = DType::f32) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = draw(generator);
  return Tensor::from(std::span<const float>(values), dims, own_device()).to(dtype);
}

// Sees how many exchanges are under way when backward comes through.
class Spy final : public Function {
 public:
  explicit Spy(std::vector<uint64_t>* seen) : seen_(seen) {}
  std::string name() const override { return "spy"; }
  TensorList forward(const TensorList& inputs) override { return {clone(inputs[0])}; }
  TensorList backward(const TensorList& gradients) override {
    seen_->push_back(line().under_way());
    return {gradients[0]};
  }

 private:
  std::vector<uint64_t>* seen_;
};

// A net of matrices of `width`, of which each rank has all, and a batch of which each rank has rows.
struct Net {
  int64_t width;
  TensorList weights;
  Tensor batch;

  Net(int64_t of_width, int layers, DType dtype = DType::f32) : width(of_width) {
    const Placement all = Placement::all(devices());
    for (int i = 0; i < layers; ++i) {
      const Tensor whole = random_numbers({width, width}, static_cast<uint32_t>(i + 1), dtype) * 0.3;
      weights.push_back(spread(whole, all, {B}).detach().requires_grad_());
    }
    batch = spread(random_numbers({2 * ranks() + 1, width}, 77, dtype), all, {S0});
  }

  // `seen`: by spies between the layers, from the last layer to the first.
  Tensor loss(int64_t step = 0, std::vector<uint64_t>* seen = nullptr) const {
    Tensor x = batch * (1.0 + 0.25 * static_cast<double>(step));
    for (const Tensor& weight : weights) {
      x = tanh(matmul(x, weight));
      if (seen != nullptr) x = call_function(std::make_shared<Spy>(seen), {x})[0];
    }
    return sum(square(x));
  }
  void forget() const {
    for (const Tensor& weight : weights) weight.set_grad({});
  }
  // What an optimiser needs.
  TensorList gradients(Sbp sbp = B) const {
    TensorList all;
    for (const Tensor& weight : weights) all.push_back(to_global(weight.grad(), {sbp}));
    return all;
  }
  // A step after which the same is expected of the next one.
  void step(Sbp sbp = B, int64_t number = 0) const {
    loss(number).backward();
    for (const Tensor& gradient : gradients(sbp)) to_local(gradient).wait();
    forget();
  }
};

template <class Call>
Traffic traffic_of(const Call& call) {
  const Traffic before = Communicator::traffic();
  call();
  const Traffic after = Communicator::traffic();
  return {after.exchanges - before.exchanges, after.bytes - before.bytes, after.beside - before.beside};
}

std::string bytes_of(const Tensor& global) {
  const Tensor part = to_local(global);
  std::string bytes(static_cast<size_t>(part.bytes()), '\0');
  part.copy_to_host(bytes.data());
  return bytes;
}

// A file by which one rank tells the others that it has come so far, since no exchange may do it.
class Sign {
 public:
  Sign() {
    std::array<char, 512> name{};
    fmt::format_to_n(name.data(), name.size() - 1, "{}tenon_ahead_XXXXXX", testing::TempDir());
    if (rank() == 0 && mkdtemp(name.data()) == nullptr) std::abort();
    throw_if_error(world().broadcast(name.data(), name.size(), DType::u8, 0));
    folder_ = name.data();
  }
  ~Sign() {
    static_cast<void>(world().barrier().ok());
    if (rank() == 0) std::filesystem::remove_all(folder_);
  }
  Sign(const Sign&) = delete;
  Sign& operator=(const Sign&) = delete;

  void give() const { std::ofstream(folder_ / "here").put('\n'); }
  bool wait() const {
    for (int round = 0; round < 3000; ++round) {
      if (std::filesystem::exists(folder_ / "here")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  std::filesystem::path folder_;
};

constexpr int64_t kLarge = 260, kSmall = 24;  // a matrix of the first goes alone, those of the second go together

// What the gradients are, by the same program without anything ahead: clones are not expected.
std::vector<std::string> bytes_without(const Net& net, Sbp sbp) {
  std::vector<std::string> all;
  for (const Tensor& weight : net.weights) all.push_back(bytes_of(to_global(clone(weight.grad()), {sbp})));
  return all;
}

// The first rank comes to the end of backward before the others begin with it: so it has not waited for one reduction.
TEST(Ahead, BackwardDoesNotWaitForReductions) {
  if (ranks() == 1) return;
  const Net net(kLarge, 3);
  for (int i = 0; i < 2; ++i) net.step();
  const Sign sign;
  std::vector<uint64_t> seen;
  const Tensor loss = net.loss(0, &seen);
  to_local(loss).wait();
  if (rank() != 0) {
    ASSERT_TRUE(sign.wait());
  }
  loss.backward();
  if (rank() == 0) {
    EXPECT_EQ(seen, (std::vector<uint64_t>{0, 1, 2}));  // each gradient began as soon as it was there
    EXPECT_EQ(line().under_way(), 3u);
    sign.give();
  }
  const TensorList got = net.gradients();
  const std::vector<std::string> expected = bytes_without(net, B);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(bytes_of(got[i]), expected[i]) << i;
  EXPECT_EQ(line().under_way(), 0u);
}

TEST(Ahead, SmallGradientsTravelTogether) {
  const Net net(kSmall, 5);
  net.step();
  for (int64_t i = 1; i < 4; ++i) {
    net.loss(i).backward();
    TensorList got;
    const Traffic traffic = traffic_of([&] {
      for (const Tensor& gradient : net.gradients()) got.push_back(gradient), static_cast<void>(bytes_of(gradient));
    });
    if (ranks() > 1) {
      EXPECT_EQ(traffic.exchanges, 1u) << "step " << i;
      EXPECT_EQ(traffic.beside, 1u) << "step " << i;
    }
    const std::vector<std::string> expected = bytes_without(net, B);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(bytes_of(got[k]), expected[k]) << k;
    net.forget();
  }
}

// Buckets that are filled go while backward goes on: 70 kB each, 1 MB the first.
TEST(Ahead, FullBucketsGo) {
  if (ranks() == 1) return;
  const Net net(132, 20);
  for (int i = 0; i < 2; ++i) net.step();
  const Traffic traffic = traffic_of([&] { net.step(); });
  EXPECT_EQ(traffic.beside, 2u);  // 15 in the first
}

// Sums in the order of ranks have the same bits ahead, alone or in a bucket, as when they are needed.
TEST(Ahead, DeterministicSumsHaveTheSameBits) {
  use_deterministic_algorithms(true);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const int64_t width : {kLarge, kSmall}) {
      const Net net(width, 3, dtype);
      net.step();
      for (int64_t i = 1; i < 3; ++i) {
        net.loss(i).backward();
        const TensorList got = net.gradients();
        const std::vector<std::string> expected = bytes_without(net, B);
        for (size_t k = 0; k < got.size(); ++k) {
          EXPECT_EQ(bytes_of(got[k]), expected[k]) << dtype_name(dtype) << " " << width << " step " << i << " " << k;
        }
        net.forget();
      }
    }
  }
  use_deterministic_algorithms(false);
}

// An optimiser whose states are split needs parts of the sums.
TEST(Ahead, PartsOfSums) {
  const Net net(kLarge, 3);
  net.step(S0);
  for (int64_t i = 1; i < 3; ++i) {
    TensorList got;
    const Traffic traffic = traffic_of([&] {
      net.loss(i).backward();
      got = net.gradients(S0);
      for (const Tensor& gradient : got) static_cast<void>(bytes_of(gradient));
    });
    EXPECT_EQ(traffic.beside, ranks() > 1 ? 3u : 0u);
    const std::vector<std::string> expected = bytes_without(net, S0);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(bytes_of(got[k]), expected[k]) << k;
    net.forget();
  }
}

// Gradients of several batches are reduced once, when the last has been added.
TEST(Ahead, SeveralBatchesAreReducedOnce) {
  const Net net(kLarge, 2);
  for (int64_t step = 0; step < 4; ++step) {
    TensorList got;
    const Traffic traffic = traffic_of([&] {
      for (int64_t batch = 0; batch < 3; ++batch) net.loss(batch + step).backward();
      got = net.gradients();
      for (const Tensor& gradient : got) static_cast<void>(bytes_of(gradient));
    });
    if (ranks() > 1) {
      EXPECT_EQ(traffic.exchanges, 2u) << step;
      EXPECT_EQ(traffic.beside, 2u) << step;  // in the first step since to_global of so much goes on beside its caller
    }
    const std::vector<std::string> expected = bytes_without(net, B);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(bytes_of(got[k]), expected[k]) << k;
    net.forget();
  }
}

// What is written, or needed otherwise than the last time, is boxed as it is then.
TEST(Ahead, ExpectationsMayFail) {
  const Net net(kLarge, 2);
  net.step();
  for (int64_t step = 0; step < 6; ++step) {
    net.loss(step).backward();
    if (step % 3 == 0) {
      for (const Tensor& weight : net.weights) weight.grad().mul_(0.5);
    }
    if (step == 4) net.loss(step).backward();
    const Sbp sbp = step % 2 == 0 ? B : S1;
    const std::vector<std::string> expected = bytes_without(net, sbp);
    const TensorList got = net.gradients(sbp);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(bytes_of(got[k]), expected[k]) << "step " << step << ", " << k;
    net.forget();
  }
}

// Both axes of a grid: sums along one, then along the other.
TEST(Ahead, Grids) {
  if (ranks() != 4) return;
  const Placement grid(devices(), {2, 2}, {0, 1, 2, 3});
  const Tensor weight = spread(random_numbers({kSmall, kSmall}, 1), grid, {B, B}).detach().requires_grad_();
  const Tensor batch = spread(random_numbers({12, kSmall}, 2), grid, {S0, S0});
  for (int64_t i = 0; i < 3; ++i) {
    sum(square(matmul(batch, weight) * static_cast<double>(i + 1))).backward();
    const std::string expected = bytes_of(to_global(clone(weight.grad()), {B, B}));
    EXPECT_EQ(bytes_of(to_global(weight.grad(), {B, B})), expected);
    weight.set_grad({});
  }
}

// --- exchanges that are begun

// Calls come after what was begun before, on all ranks.
TEST(Begun, ExchangesKeepTheirOrder) {
  std::mt19937 generator(5);
  for (int round = 0; round < 60; ++round) {
    const auto count = std::uniform_int_distribution<int64_t>(0, 3000)(generator);
    const Tensor src = random_numbers({count}, static_cast<uint32_t>(round)).to(Device::host());
    const Tensor dst = Tensor::empty({count}, DType::f32, Device::host());
    std::vector<float> called(static_cast<size_t>(count), -1);
    throw_if_error(world().begin(src, dst, {Collective::all_reduce, Reduction::max}));
    if (generator() % 2 == 0) {
      throw_if_error(world().all_reduce(src.data(), called.data(), count, DType::f32, Reduction::min));
      EXPECT_EQ(called, src.to_host<float>());
    }
    EXPECT_EQ(dst.to_host<float>(), src.to_host<float>());
  }
}

// Memory that is given up while an exchange reads it is not used again before its end.
TEST(Begun, SourcesMayBeDropped) {
  for (int round = 0; round < 20; ++round) {
    const Tensor dst = Tensor::empty({50'000}, DType::f32, Device::host());
    {
      const Tensor src = full({50'000}, static_cast<double>(round), DType::f32, Device::host());
      throw_if_error(world().begin(src, dst, {Collective::all_reduce}));
    }
    const Tensor other = full({50'000}, -5.0, DType::f32, Device::host());
    const Tensor twice = add(dst, dst);
    EXPECT_EQ(twice.to_host<float>(), std::vector<float>(50'000, static_cast<float>(2 * round * ranks())));
  }
}

TEST(Begun, ASourceIsNotWrittenBeforeTheEnd) {
  Tensor src = full({50'000}, 3.0, DType::f32, Device::host());
  const Tensor dst = Tensor::empty({50'000}, DType::f32, Device::host());
  throw_if_error(world().begin(src, dst, {Collective::all_reduce}));
  src.fill_(100.0);
  EXPECT_EQ(dst.to_host<float>(), std::vector<float>(50'000, static_cast<float>(3 * ranks())));
}

TEST(Begun, RefusedOnSightIsTheReadersError) {
  const Tensor src = full({4}, true, DType::boolean, Device::host());
  const Tensor dst = Tensor::empty({4}, DType::boolean, Device::host());
  throw_if_error(world().begin(src, dst, {Collective::all_reduce, Reduction::sum}));
  EXPECT_NE(error_of([&] { dst.data(); }).find("takes no"), std::string::npos);
  EXPECT_TRUE(world().barrier().ok());
}

}  // namespace
}  // namespace tenon::global
