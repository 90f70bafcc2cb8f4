// Segments of prepared ops: they compute what eager computes, bit for bit, and name the op that fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/kernel/cancellation.h"
#include "core/ops/ops.h"
#include "core/vm/engine.h"
#include "core/vm/vm.h"
#include "tests/unit/interpreter/recorded_segment.h"

namespace tenon {
namespace {

using testing::RecordedSegment;

Tensor random_tensor(uint64_t seed, Dims dims) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = normal(random);
  return Tensor::from<float>(values, dims, Device("cpu"));
}

// Results as numbers that a NaN compares equal in.
std::vector<uint32_t> bits(const Tensor& tensor) {
  const std::vector<float> values = contiguous(tensor).to_host<float>();
  std::vector<uint32_t> words(values.size());
  std::memcpy(words.data(), values.data(), values.size() * 4);
  return words;
}

void expect_equal_to_eager(const RecordedSegment& recorded, const RecordedSegment::Function& function,
                           const TensorList& inputs) {
  TensorList outputs;
  const Status ran = recorded.run(inputs, &outputs);
  ASSERT_TRUE(ran.ok()) << ran.message();
  const TensorList wanted = function(inputs);
  ASSERT_EQ(outputs.size(), wanted.size());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(bits(outputs[i]), bits(wanted[i])) << "output " << i;
}

TensorList chain_of(int64_t length, std::span<const Tensor> inputs) {
  Tensor x = inputs[0];
  for (int64_t i = 0; i < length; ++i) x = i % 2 == 0 ? neg(x) : relu(x);
  return {x};
}

// A transformer's attention and a small net around it: views, transposes, steps in place, workspace, scalars.
struct Block {
  Tensor weight = random_tensor(1, {16, 16}), bias = random_tensor(2, {16}), table = random_tensor(3, {5, 16});
  Tensor index = Tensor::from<int64_t>(std::vector<int64_t>{4, 0, -1, 2, 2, 1}, {6}, Device("cpu"));

  TensorList operator()(std::span<const Tensor> inputs) const {
    Tensor x = add(inputs[0], gather_slices(table, 0, index));
    const Tensor q = matmul(x, weight), k = mul(x, Scalar(0.25));
    Tensor scores = matmul(q, t(k));
    add_(scores, inputs[1]);
    const Tensor mixed = matmul(softmax(scores, 1), x);
    const Tensor half = slice(add(mixed, bias), 1, 0, 8);
    return {relu(half), sum(view(mixed, {2, 48}), std::vector<int64_t>{1})};
  }
};

TEST(Segments, OfAChainEqualEagerBitForBit) {
  for (const int64_t length : {1, 2, 100}) {
    SCOPED_TRACE(length);
    const auto function = [length](std::span<const Tensor> inputs) { return chain_of(length, inputs); };
    const RecordedSegment recorded(function, {random_tensor(5, {4})});
    EXPECT_EQ(recorded.segment().launches().size(), static_cast<size_t>(length));
    for (uint64_t seed = 10; seed < 15; ++seed) {
      expect_equal_to_eager(recorded, function, {random_tensor(seed, {4})});
    }
  }
}

TEST(Segments, OfANetWithViewsConstantsAndStepsInPlaceEqualEagerBitForBit) {
  const Block block;
  const RecordedSegment recorded(block, {random_tensor(6, {6, 16}), random_tensor(7, {6, 6})});
  EXPECT_EQ(recorded.plan().blocks.size(), 1u);
  for (uint64_t seed = 20; seed < 40; ++seed) {
    expect_equal_to_eager(recorded, block, {random_tensor(seed, {6, 16}), random_tensor(seed + 100, {6, 6})});
  }
}

// Ops at random on values at random, each run on three inputs.
TEST(Segments, OfRandomProgramsEqualEagerBitForBit) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const auto function = [seed](std::span<const Tensor> inputs) {
      std::mt19937_64 random(seed);
      std::vector<Tensor> values(inputs.begin(), inputs.end());
      const auto any = [&]() -> Tensor& { return values[random() % values.size()]; };
      const auto is_input = [&](const Tensor& value) {
        return std::any_of(inputs.begin(), inputs.end(),
                           [&](const Tensor& input) { return input.impl()->storage == value.impl()->storage; });
      };
      const uint64_t steps = 3 + random() % 30;
      for (uint64_t i = 0; i < steps; ++i) {
        switch (random() % 8) {
          case 0: values.push_back(relu(any())); break;
          case 1: values.push_back(add(any(), any())); break;
          case 2: values.push_back(matmul(any(), t(any()))); break;
          case 3: values.push_back(softmax(any(), static_cast<int64_t>(random() % 2))); break;
          case 4: values.push_back(t(any())); break;
          case 5: values.push_back(mul(any(), Scalar(0.5 + static_cast<double>(random() % 8)))); break;
          case 6: values.push_back(tanh(any())); break;
          default:
            if (!is_input(values.back())) add_(values.back(), values.front());
        }
      }
      return TensorList{add(values.back(), any())};
    };
    const RecordedSegment recorded(function, {random_tensor(1, {5, 5}), random_tensor(2, {5, 5})});
    for (uint64_t run = 0; run < 3; ++run) {
      expect_equal_to_eager(recorded, function,
                            {random_tensor(seed * 10 + run, {5, 5}), random_tensor(seed * 10 + run + 5, {5, 5})});
    }
  }
}

TEST(Segments, RunOnManyThreadsAtOnceEachWithBlocksOfItsOwn) {
  const Block block;
  const RecordedSegment recorded(block, {random_tensor(6, {6, 16}), random_tensor(7, {6, 6})});
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t round = 0; round < 40; ++round) {
        const uint64_t seed = 1000 * thread + round;
        expect_equal_to_eager(recorded, block, {random_tensor(seed, {6, 16}), random_tensor(seed + 500, {6, 6})});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// On a synchronous device the error comes at the call, and what the run could have written has it as poison.
class FailingSegments : public ::testing::Test {
 protected:
  static TensorList function(std::span<const Tensor> inputs) {
    const Tensor twice = add(inputs[0], inputs[0]);
    return {relu(gather_slices(twice, 0, inputs[1])), neg(inputs[0])};
  }
  static Tensor indices(int64_t last) {
    return Tensor::from<int64_t>(std::vector<int64_t>{0, 2, last}, {3}, Device("cpu"));
  }

  const Tensor values = random_tensor(3, {4});
  const RecordedSegment recorded{function, {values, indices(1)}};
};

TEST_F(FailingSegments, NameTheOpThatMetBadDataAndPoisonWhatTheyCouldHaveWritten) {
  TensorList outputs;
  const Status status = recorded.run(TensorList{values, indices(9)}, &outputs);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(),
            "gather_slices: index 9 is out of range for an axis of length 4 (argument 'index').\n"
            "while running gather_slices(f32 [4], i64 [3]) on cpu:0\n"
            "while running node 2 (/gather_slices) on cpu:0");
  for (const Tensor& output : outputs) {
    EXPECT_THROW(static_cast<void>(output.to_host<float>()), Error);
    EXPECT_THROW(static_cast<void>(relu(output)), Error);
  }
  TensorList again;
  ASSERT_TRUE(recorded.run(TensorList{values, indices(3)}, &again).ok()) << "the next run is right";
  EXPECT_EQ(bits(again[0]), bits(function(TensorList{values, indices(3)})[0]));
  ASSERT_TRUE(recorded.run_into(TensorList{values, indices(3)}, outputs).ok());
  EXPECT_EQ(bits(outputs[0]), bits(again[0])) << "a run that overwrites its outputs heals them";
}

TEST_F(FailingSegments, OfAPoisonedInputDoNotRunAndHandThePoisonOn) {
  TensorList poisoned, outputs;
  EXPECT_FALSE(recorded.run(TensorList{values, indices(9)}, &poisoned).ok());
  const RecordedSegment next([](std::span<const Tensor> inputs) { return TensorList{relu(inputs[0])}; },
                             {random_tensor(4, {3})});
  const Status status = next.run(TensorList{poisoned[0]}, &outputs);
  EXPECT_NE(status.message().find("index 9 is out of range"), std::string::npos) << status.message();
  EXPECT_THROW(static_cast<void>(outputs[0].to_host<float>()), Error);
}

TEST_F(FailingSegments, EndBeforeTheNextLaunchWhenTheyAreCancelled) {
  const Cancellation cancellation;
  TensorList outputs;
  {
    const CancellationScope scope(cancellation);
    EXPECT_TRUE(recorded.run(TensorList{values, indices(3)}, &outputs).ok());
    cancellation.cancel();
    const Status status = recorded.run(TensorList{values, indices(3)}, &outputs);
    EXPECT_EQ(status.code(), Code::cancelled);
    EXPECT_NE(status.message().find("The program cancelled this run before launch 1 of 4."), std::string::npos)
        << status.message();
    EXPECT_THROW(static_cast<void>(outputs[0].to_host<float>()), Error);
  }
  EXPECT_TRUE(recorded.run(TensorList{values, indices(3)}, &outputs).ok());
}

TEST_F(FailingSegments, RefuseBindingsThatDoNotFit) {
  const vm::Operand one{values.impl()->storage, 0, false, false};
  EXPECT_EQ(vm::run({&recorded.segment(), std::span(&one, 1), 0}).message(),
            "A segment has 5 bindings, but a run gives 1.");
  const vm::Operand none[5] = {one, one, one, one, {}};
  EXPECT_EQ(vm::run({&recorded.segment(), none, 0}).message(), "Binding 4 of a run on cpu:0 has no memory.");
}

TEST(SegmentBuilders, RefusePlacesThatNoRunHas) {
  const Device cpu("cpu");
  const RecordedSegment recorded([](std::span<const Tensor> inputs) { return TensorList{relu(inputs[0])}; },
                                 {random_tensor(4, {3})});
  vm::SegmentBuilder builder(cpu.state(), 2, nullptr);
  const NodeName name{{"relu"}, 0, {}, ""};
  const vm::SegmentAddress wrong[] = {vm::SegmentAddress::binding(0, 0), vm::SegmentAddress::binding(2, 0)};
  vm::SegmentLaunch launch;
  launch.kernel = recorded.segment().launches()[0].kernel;
  launch.operands = wrong;
  launch.name = &name;
  EXPECT_EQ(builder.add(launch).message(), "A launch of relu has an operand in binding 2, but the segment has 2.");
  const vm::SegmentAddress constant[] = {vm::SegmentAddress::binding(0, 0), vm::SegmentAddress::constant(0, 0)};
  launch.operands = constant;
  EXPECT_EQ(builder.add(launch).message(), "A launch of relu has an operand in constant 0, but the segment has 0.");
}

}  // namespace
}  // namespace tenon
