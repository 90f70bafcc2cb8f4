// Gradients that are reduced while backward continues: which exchanges are begun, in which messages, and that only the
// time differs.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/device/deterministic.h"
#include "core/global/communicator.h"
#include "core/ops/operators.h"
#include "core/optim/optim.h"
#include "primitives/text/format.h"
#include "tests/unit/global/shared_folder.h"
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

// Notes the number of pending exchanges when backward passes it.
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

// A net of matrices of `width`, which every rank holds whole. Each rank has some rows of the batch.
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

  // `seen`: noted by spies between the layers, from the last layer to the first.
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
  // The requests of an optimiser.
  TensorList gradients(Sbp sbp = B) const {
    TensorList all;
    for (const Tensor& weight : weights) all.push_back(to_global(weight.grad(), {sbp}));
    return all;
  }
  // A step after which the same requests are expected for the next step.
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

// A file by which one rank signals its progress to the others, because no exchange may do it.
class Sign {
 public:
  void give() const { std::ofstream(folder_ / "here").put('\n'); }
  bool wait() const {
    for (int round = 0; round < 3000; ++round) {
      if (std::filesystem::exists(folder_ / "here")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  SharedFolder folder_;
};

constexpr int64_t kLarge = 260,
                  kSmall = 24;  // a matrix of the first size is sent alone, matrices of the second together

// The gradients computed by the same program with nothing ahead: clones are not expected.
std::vector<std::string> bytes_without(const Net& net, Sbp sbp) {
  std::vector<std::string> all;
  for (const Tensor& weight : net.weights) all.push_back(bytes_of(to_global(clone(weight.grad()), {sbp})));
  return all;
}

// The first rank reaches the end of backward before the others begin it, so it has not waited for any reduction.
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
    EXPECT_EQ(seen, (std::vector<uint64_t>{0, 1, 2}));  // each gradient's reduction began as soon as it was ready
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

// Full buckets are sent while backward continues: 70 kB each, the first 1 MB.
TEST(Ahead, FullBucketsGo) {
  if (ranks() == 1) return;
  const Net net(132, 20);
  for (int i = 0; i < 2; ++i) net.step();
  const Traffic traffic = traffic_of([&] { net.step(); });
  EXPECT_EQ(traffic.beside, 2u);  // 15 in the first
}

// Sums in the order of ranks have the same bits ahead, alone, in a bucket, and when they are needed.
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

// An optimiser whose states are split needs only parts of the sums.
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

// Gradients of several batches are reduced once, after the last has been added.
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
      EXPECT_EQ(traffic.beside, 2u) << step;  // in the first step because to_global of that size runs in the background
    }
    const std::vector<std::string> expected = bytes_without(net, B);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(bytes_of(got[k]), expected[k]) << k;
    net.forget();
  }
}

// A tensor that is written, or used in another way than the last time, is boxed with its present value.
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

// --- sums that are already known

// An optimiser reads gradients twice, and clipping reads and overwrites them. Each is reduced once, in the background
// of backward, and results equal those of one process.
TEST(Known, AGradientIsReducedOnceForAllThatAStepDoesWithIt) {
  enum Way { plain, norm, value };
  for (const Way way : {plain, norm, value}) {
    const auto train = [&](const TensorList& weights, const Tensor& batch, const std::function<void(Traffic)>& see) {
      optim::AdamW optimizer(weights, {.lr = 0.01});
      for (int step = 0; step < 3; ++step) {
        see(traffic_of([&] {
          Tensor x = batch;
          for (const Tensor& weight : weights) x = tanh(matmul(x, weight));
          sum(square(x)).backward();
          if (way == norm) optim::clip_grad_norm(weights, 0.5);
          if (way == value) optim::clip_grad_value(weights, 1e-3);
          optimizer.step();
          for (const Tensor& weight : weights) (is_global(weight) ? to_local(weight) : weight).wait();
        }));
        optimizer.zero_grad();
      }
    };
    TensorList whole, spread_out;
    const Tensor batch = random_numbers({2 * ranks() + 1, kLarge}, 5, DType::f64);
    for (uint32_t i = 0; i < 3; ++i) {
      whole.push_back((random_numbers({kLarge, kLarge}, i, DType::f64) * 0.1).detach().requires_grad_());
      spread_out.push_back(spread(whole.back().detach(), Placement::all(devices()), {B}).detach().requires_grad_());
    }
    int step = 0;
    train(spread_out, spread(batch, Placement::all(devices()), {S0}), [&](Traffic traffic) {
      if (ranks() == 1) return;
      // Each rank computes a part of a list; at the end the list is whole again.
      EXPECT_EQ(traffic.exchanges, way == value ? 6u : 3u) << way << " step " << step;
      const int64_t once = 3 * 8 * kLarge * kLarge * 2 * (ranks() - 1) / ranks();
      EXPECT_NEAR(static_cast<double>(traffic.bytes), static_cast<double>(once), 0.02 * static_cast<double>(once));
      EXPECT_GE(traffic.beside, step == 0 ? 0u : 3u) << way << " step " << step;
      ++step;
    });
    train(whole, batch, [](Traffic) {});
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::vector<double> got = elements_of(spread_out[i].detach()), wanted = elements_of(whole[i].detach());
      for (size_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(got[k], wanted[k], 1e-6) << way << " " << i << " " << k;
    }
  }
}

// But if the tensor is written, the next reader of the sum sees the new value.
TEST(Known, AWriteIsSeen) {
  const Placement all = Placement::all(devices());
  const Tensor ones = spread(tenon::ones({4, 3}, DType::f32, own_device()), all, {B});
  const std::function<void(Tensor)> writes[] = {
      [](Tensor x) { x.mul_(2); },
      [&](Tensor x) { add_(x, ones); },
      [](Tensor x) { x.slice(0, 1, 3).fill_(5); },
      [](Tensor x) { x.t()[1].mul_(3); },
      [](Tensor x) { x.view({12}).add_(1); },
      [](Tensor x) { x.detach().mul_(2); },
      [](Tensor x) { to_local(x).mul_(2); },
      [](Tensor x) { relu(x), x.mul_(0.5), x.add_(1); },
      [&](Tensor x) { mul_(x, ones * 3.0); },
      [&](Tensor x) { mul_(x, ones * 3.0), mul_(x, ones * 2.0), x.mul_(2); },
      [&](Tensor x) { clamp_(x, -1, 1), to_local(x).mul_(2); },
      [&](Tensor x) { copy_(x, ones); },
  };
  for (size_t i = 0; i < std::size(writes); ++i) {
    Tensor part = some({4, 3}, 10 + static_cast<uint64_t>(rank()));
    const Tensor x = to_global(clone(part), all, {P}), fresh = to_global(clone(part), all, {P});
    const std::vector<double> before = elements_of(x), squares = elements_of(square(x));
    EXPECT_EQ(elements_of(x), before);
    writes[i](x);
    const std::vector<double> after = elements_of(x), twice = elements_of(square(x));
    writes[i](fresh);
    EXPECT_EQ(after, elements_of(fresh)) << i;
    EXPECT_NE(after, before) << i;
    for (size_t k = 0; k < after.size(); ++k) EXPECT_EQ(twice[k], after[k] * after[k]) << i;
  }
}

// Two results of to_global share nothing, also no known sums.
TEST(Known, WhatIsGivenAwayIsTheOwners) {
  const Placement all = Placement::all(devices());
  for (const Sbp first : {B, S0, S1}) {
    for (const Sbp second : {B, S0, S1}) {
      const Tensor x = to_global(some({5, 4}, 10 + static_cast<uint64_t>(rank())), all, {P});
      const std::vector<double> sum = elements_of(x);
      elements_of(square(x));
      Tensor one = to_global(x, {first});
      Tensor other = to_global(x, {second});
      one.fill_(100);
      EXPECT_EQ(elements_of(other), sum);
      EXPECT_EQ(elements_of(x), sum);
      other.fill_(100);
      EXPECT_EQ(elements_of(x), sum);
      EXPECT_EQ(elements_of(to_global(x, {B})), sum);
    }
  }
}

// In a compiled function, the order of its calls decides.
TEST(Known, ProgramsReduceOnce) {
  const Placement all = Placement::all(devices());
  const CompiledList compiled(
      [](const TensorList& in) {
        const Tensor x = matmul(in[0], in[1]);  // a partial sum
        const Tensor first = relu(x), second = square(x);
        Tensor y = x * 1.0;
        const Tensor third = relu(y);
        y.mul_(2);
        return TensorList{to_global(first, {B}), to_global(second, {B}), to_global(third, {B}),
                          to_global(relu(y), {B})};
      },
      {});
  for (uint64_t call = 0; call < 4; ++call) {
    const Tensor a = some({6, 8}, call), b = some({8, 3}, call + 9), x = matmul(a, b);
    TensorList got;
    const TensorList inputs{spread(a, all, {S1}), spread(b, all, {S0})};
    const Traffic traffic = traffic_of([&] {
      got = compiled(inputs);
      for (const Tensor& each : got) to_local(each).wait();
    });
    expect_same(got[0], relu(x), "first");
    expect_same(got[1], square(x), "second");
    expect_same(got[2], relu(x), "third");
    expect_same(got[3], relu(x * 2.0), "written");
    if (ranks() > 1 && call > 1) {
      EXPECT_EQ(traffic.exchanges, 5u);  // one that adds, and four that gather parts
    }
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

// --- exchanges that were begun

// Calls follow the exchanges that were begun before, on all ranks.
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

// Memory that is released while an exchange reads it is not reused before the end of the exchange.
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
  EXPECT_NE(error_of([&] { dst.data(); }).find("does not support"), std::string::npos);
  EXPECT_TRUE(world().barrier().ok());
}

}  // namespace
}  // namespace tenon::global
