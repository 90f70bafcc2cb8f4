// Micro-batches: the stages of a pipeline work at the same time, in the documented order, and the gradients equal those
// of the whole batch.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/global/pipeline.h"
#include "core/ops/operators.h"
#include "primitives/text/format.h"
#include "tests/unit/global/shared_folder.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

Tensor random_numbers(const Dims& dims, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& value : values) value = draw(generator);
  return Tensor::from(std::span<const double>(values), dims, own_device());
}

// Notes when forward and backward reach a layer whose elements this rank has.
class Note final : public Function {
 public:
  explicit Note(std::string* text) : text_(text) {}
  std::string name() const override { return "note"; }
  TensorList forward(const TensorList& inputs) override {
    *text_ += 'F';
    return {clone(inputs[0])};
  }
  TensorList backward(const TensorList& gradients) override {
    *text_ += 'B';
    return {gradients[0]};
  }

 private:
  std::string* text_;
};

constexpr int64_t kWidth = 5;

// One layer on each of `stages`, in order; a placement may occur again.
struct Net {
  std::vector<Layout> stages;
  TensorList weights;

  explicit Net(const std::vector<Layout>& of_stages) : stages(of_stages) {
    for (size_t i = 0; i < stages.size(); ++i) {
      const NdSbp everywhere = NdSbp::filled(stages[i].sbp.rank(), B);
      weights.push_back(to_global(whole_weight(i), stages[i].placement, everywhere).detach().requires_grad_());
    }
  }

  static Tensor whole_weight(size_t i) { return random_numbers({kWidth, kWidth}, static_cast<uint32_t>(i + 1)); }

  // `notes`: of this rank's layers.
  Tensor loss(const Tensor& x, const Tensor& wanted, std::string* notes = nullptr) const {
    Tensor h = x;
    for (size_t i = 0; i < stages.size(); ++i) {
      h = to_global(h, stages[i].placement, stages[i].sbp);
      h = tanh(matmul(h, weights[i]));
      if (notes != nullptr && stages[i].placement.here()) h = call_function(std::make_shared<Note>(notes), {h})[0];
    }
    return mse_loss(h, wanted);
  }
};

// The result of one process for the whole batch.
struct Expected {
  double loss = 0;
  TensorList gradients;

  Expected(size_t layers, int64_t rows) {
    TensorList weights;
    Tensor h = random_numbers({rows, kWidth}, 100);
    for (size_t i = 0; i < layers; ++i) {
      weights.push_back(Net::whole_weight(i).requires_grad_());
      h = tanh(matmul(h, weights.back()));
    }
    const Tensor mean = mse_loss(h, random_numbers({rows, kWidth}, 101));
    gradients = grad({mean}, weights);
    loss = mean.item<double>();
  }
};

void expect_near(const Tensor& actual, const Tensor& expected, const std::string& what) {
  const std::vector<double> a = elements_of(actual), b = elements_of(expected);
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13) << what << ", element " << i;
}

// The gradients of micro-batches through `stages` equal those of the batch; `notes` as in loss().
void expect_as_whole(const std::vector<Layout>& stages, int64_t count, int64_t rows, bool compiles,
                     std::string* notes = nullptr) {
  SCOPED_TRACE(
      fmt::format("{} parts of {} rows through {} stages{}", count, rows, stages.size(), compiles ? ", compiled" : ""));
  const Net net(stages);
  const Tensor x = spread(random_numbers({rows, kWidth}, 100), stages.front().placement, stages.front().sbp);
  const Tensor wanted = spread(random_numbers({rows, kWidth}, 101), stages.back().placement, stages.back().sbp);
  const auto step = [&](const TensorList& batch) -> TensorList {
    return {micro_batches(count, batch, [&](const TensorList& part) { return net.loss(part[0], part[1], notes); })};
  };
  const CompiledList compiled(step, {});
  const Expected expected(stages.size(), rows);
  for (int repeat = 0; repeat < (compiles ? 3 : 2); ++repeat) {
    for (const Tensor& weight : net.weights) weight.set_grad({});
    const Tensor loss = compiles ? compiled({x, wanted})[0] : step({x, wanted})[0];
    const Placement all = Placement::all(devices());
    EXPECT_NEAR(to_local(to_global(loss, all, {B})).item<double>(), expected.loss, 1e-13);
    for (size_t i = 0; i < stages.size(); ++i) {
      expect_near(to_local(to_global(net.weights[i].grad(), all, {B})), expected.gradients[i],
                  fmt::format("the gradient of layer {} at step {}", i, repeat));
    }
  }
}

// One stage on each rank.
std::vector<Layout> one_behind_the_other() {
  std::vector<Layout> stages;
  for (int32_t rank = 0; rank < ranks(); ++rank) stages.push_back({Placement(devices(), {rank}), {B}});
  return stages;
}

TEST(MicroBatches, GradientsAreThoseOfTheBatch) {
  for (const bool compiles : {false, true}) {
    for (const int64_t count : {1, 2, 5}) expect_as_whole(one_behind_the_other(), count, 7, compiles);
  }
}

TEST(MicroBatches, RowsOfASplitBatchStayWhereTheyAre) {
  const Placement all = Placement::all(devices());
  for (const bool compiles : {false, true}) expect_as_whole({{all, {S0}}}, 3, 4 * ranks() + 1, compiles);
  const Traffic before = Communicator::traffic();
  const Tensor x = spread(some({3 * ranks() + 1, 2}, 5), all, {S0});
  const uint64_t spread_with = Communicator::traffic().exchanges - before.exchanges;
  int64_t rows = 0;
  const Tensor weight = spread(some({2, 2}, 6), all, {B}).detach().requires_grad_();
  const uint64_t until = Communicator::traffic().exchanges;
  micro_batches(2, {x}, [&](const TensorList& part) {
    rows += part[0].dims()[0];
    EXPECT_EQ(layout_of(part[0]), (Layout{all, {S0}}));
    return sum(matmul(part[0], weight));
  });
  EXPECT_EQ(rows, 3 * ranks() + 1);
  EXPECT_EQ(Communicator::traffic().exchanges, until) << "after " << spread_with << " to spread the batch";
}

TEST(MicroBatches, AStageBeginsAsManyPartsAsStagesFollowAndOneMore) {
  std::string notes;
  const int64_t count = 5, behind = ranks() - 1 - rank();
  expect_as_whole(one_behind_the_other(), count, 5, false, &notes);
  std::string once(static_cast<size_t>(behind), 'F');
  for (int64_t i = 0; i < count - behind; ++i) once += "FB";
  once += std::string(static_cast<size_t>(behind), 'B');
  EXPECT_EQ(notes, once + once);
}

// Before it takes its first part, the last stage waits until the first stage has begun all the parts that it may.
TEST(MicroBatches, AStageGoesOnWhileTheNextOneIsBusy) {
  if (ranks() == 1) GTEST_SKIP() << "one rank is not a pipeline";
  const SharedFolder folder;
  const auto flag = folder / "begun";
  const std::vector<Layout> stages = one_behind_the_other();
  const Net net(stages);
  const Tensor x = spread(random_numbers({6, kWidth}, 100), stages.front().placement, {B});
  const Tensor wanted = spread(random_numbers({6, kWidth}, 101), stages.back().placement, {B});
  int begun = 0;
  bool has_waited = false;
  micro_batches(6, {x, wanted}, [&](const TensorList& part) {
    const bool is_last = rank() == ranks() - 1;
    if (is_last && begun == 0) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!std::filesystem::exists(flag) && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      has_waited = std::filesystem::exists(flag);
    }
    const Tensor loss = net.loss(part[0], part[1]);
    if (++begun == ranks() && rank() == 0) std::ofstream(flag) << 1;
    return loss;
  });
  if (rank() == ranks() - 1) {
    EXPECT_TRUE(has_waited) << "the first stage did not begin " << ranks() << " parts alone";
  }
}

TEST(MicroBatches, StagesThatShareRanksOrFormACircleGoTogether) {
  const Placement all = Placement::all(devices()), first(devices(), {0}), last(devices(), {ranks() - 1});
  std::string notes;
  expect_as_whole({{first, {B}}, {last, {B}}, {first, {B}}}, 4, 6, false,
                  first.here() || last.here() ? &notes : nullptr);
  expect_as_whole({{all, {S0}}, {last, {B}}}, 3, 3 * ranks() + 2, false);
  expect_as_whole({{first, {B}}, {all, {S0}}, {last, {B}}}, 3, 3 * ranks() + 2, true);
  // Forward of one part and backward of one part, alternately.
  const std::string part = ranks() == 1 ? "FFFBBB" : rank() == 0 ? "FFBB" : rank() == ranks() - 1 ? "FB" : "";
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += part;
  EXPECT_EQ(notes, expected);
}

TEST(MicroBatches, APipelineOfGroups) {
  if (ranks() < 3) GTEST_SKIP() << "needs a stage of two ranks and another one";
  std::vector<int32_t> rest;
  for (int32_t rank = 2; rank < ranks(); ++rank) rest.push_back(rank);
  const Placement two(devices(), {0, 1}), others(devices(), rest);
  for (const bool compiles : {false, true}) {
    expect_as_whole({{two, {S0}}, {others, {B}}}, 3, 11, compiles);
    if (ranks() == 4) expect_as_whole({{two, {S0}}, {others, {S0}}}, 3, 11, compiles);
  }
}

TEST(MicroBatches, LocalTensorsAddUpTheirGradients) {
  const Tensor x = random_numbers({7, kWidth}, 100), wanted = random_numbers({7, kWidth}, 101);
  const Tensor weight = Net::whole_weight(0).requires_grad_();
  const Tensor input = x.detach().requires_grad_();
  const Tensor loss = micro_batches(
      3, {input, wanted}, [&](const TensorList& part) { return mse_loss(tanh(matmul(part[0], weight)), part[1]); });
  const Expected expected(1, 7);
  EXPECT_NEAR(loss.item<double>(), expected.loss, 1e-13);
  EXPECT_FALSE(loss.requires_grad());
  expect_near(weight.grad(), expected.gradients[0], "the weight");
  const Tensor again = x.detach().requires_grad_();
  expect_near(input.grad(), grad({mse_loss(tanh(matmul(again, weight)), wanted)}, {again})[0], "the input");
}

TEST(MicroBatches, ABatchMayWantGradients) {
  const Placement all = Placement::all(devices());
  const int64_t rows = 3 * ranks() + 1;
  const Tensor whole = random_numbers({rows, kWidth}, 100), weight = Net::whole_weight(0);
  const Tensor local = whole.detach().requires_grad_();
  const Tensor expected = grad({mean(tanh(matmul(local, weight)))}, {local})[0];
  for (const NdSbp& sbp : {NdSbp{S0}, NdSbp{S1}, NdSbp{B}}) {
    const Tensor x = spread(whole, all, sbp).detach().requires_grad_();
    const Tensor w = to_global(weight, all, {B});
    micro_batches(3, {x}, [&](const TensorList& part) { return mean(tanh(matmul(part[0], w))); });
    expect_near(to_local(to_global(x.grad(), all, {B})), expected, to_string(sbp));
  }
}

TEST(MicroBatches, BadArgumentsAreNamed) {
  const Tensor x = some({6, 2}, 1), weight = some({2, 2}, 2).requires_grad_();
  const auto good = [&](const TensorList& part) { return sum(matmul(part[0], weight)); };
  const auto expect = [&](const std::string& error, std::string_view text) {
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect(error_of([&] { micro_batches(0, {x}, good); }), "the count is 0, and must be at least 1");
  expect(error_of([&] { micro_batches(2, {}, good); }), "the batch has no tensors");
  expect(error_of([&] { micro_batches(2, {sum(x)}, good); }), "tensor 0 of the batch has no rows");
  expect(error_of([&] {
           micro_batches(2, {x, some({5, 2}, 3)}, good);
         }),
         "tensor 1 of the batch has 5 rows, and tensor 0 has 6");
  expect(error_of([&] { micro_batches(7, {x}, good); }), "6 rows cannot be divided into 7 parts");
  expect(error_of([&] { micro_batches(2, {x}, [](const TensorList& part) { return part[0]; }); }),
         "the loss has the shape [3, 2], and must be a number");
  expect(error_of([&] { micro_batches(2, {x}, [](const TensorList& part) { return sum(part[0]); }); }), "gradient");
  const Tensor rows = spread(some({ranks() * 2, 2}, 1), Placement::all(devices()), {S0});
  expect(error_of([&] { micro_batches(3, {rows}, good); }),
         fmt::format("{} rows{} cannot be divided into {} parts", ranks() * 2,
                     ranks() > 1 ? " on " + layout_of(rows).to_string() : "", 3));
  if (ranks() == 3) {
    const Tensor two = spread(some({6, 2}, 1), Placement(devices(), {0, 1}), {S0});
    expect(error_of([&] { micro_batches(2, {rows, two}, good); }), "rows of tensor 1 are on ");
  }
  good({x});
}

}  // namespace
}  // namespace tenon::global
