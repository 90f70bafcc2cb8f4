// Executables: segments, memory plans, packed constants, command lists. Each run has the bits of an eager run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "core/background/cancellation.h"
#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "core/tensor/stream.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/fakes/async/control.h"

namespace tenon::graph {
namespace {

using fakes::async_control;
using Program = std::function<TensorList(const TensorList&)>;

Tensor random_tensor(const Dims& dims, uint32_t seed, Device device = {}) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(0.5f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(random) * (random() % 2 == 0 ? 1.0f : -1.0f);
  return Tensor::from<float>(data, dims, device);
}

Graph record(const TensorList& inputs, const Program& code) {
  Recorder recorder(inputs.empty() ? Device::current() : inputs[0].device());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
  return recorder.finish(code(values));
}

Executable prepared(const TensorList& inputs, const Program& code) { return prepare(record(inputs, code)); }

std::vector<std::vector<float>> values_of(const TensorList& tensors) {
  std::vector<std::vector<float>> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.to_host<float>());
  return values;
}

Status status_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.status();
  }
  return Status();
}

size_t segments(const Executable& program) {
  const std::vector<Piece>& pieces = program.schedule->pieces;
  return static_cast<size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.segment != nullptr; }));
}

size_t launches(const Executable& program) {
  size_t sum = 0;
  for (const Piece& piece : program.schedule->pieces) sum += piece.segment == nullptr ? 0 : piece.executions.size();
  return sum;
}

TEST(Execute, AChainIsOneSegmentThatKeepsOneBuffer) {
  const TensorList x{random_tensor({1000}, 1)};
  const Program chain = [](const TensorList& in) -> TensorList {
    Tensor value = in[0];
    for (int i = 0; i < 100; ++i) value = add(value, Scalar(1.0 / (i + 1)));
    return {value};
  };
  const Executable program = prepared(x, chain);
  EXPECT_EQ(program.schedule->pieces.size(), 1u);
  EXPECT_EQ(launches(program), 100u);
  EXPECT_EQ(planned_memory(program).peak, 4000u);
  EXPECT_EQ(planned_memory(program).lower_bound, 4000u);
  EXPECT_GE(Device::current().memory_stats().planned_peak, 4000u);
  EXPECT_EQ(values_of(run(program, x)), values_of(chain(x)));
}

TEST(Execute, AValueThatIsReadLaterIsNotOverwritten) {
  const TensorList x{random_tensor({64}, 2)};
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor a = neg(in[0]), b = exp(a);
    return {mul(add(b, a), b), sub(a, b)};
  };
  EXPECT_EQ(values_of(run(prepared(x, code), x)), values_of(code(x)));
}

// If a caller writes into one result, inputs, constants, other results and later runs do not change.
TEST(Execute, ResultsOwnTheirMemory) {
  const TensorList x{random_tensor({4, 6}, 3)};
  const Tensor weight = random_tensor({4, 6}, 4);
  const Program code = [&](const TensorList& in) -> TensorList {
    const Tensor sum = add(in[0], weight);
    return {
        in[0], weight, sum, sum, transpose(sum, 0, 1), reshape(sum, {24}), slice(sum, 0, 1, 3), reshape(in[0], {24})};
  };
  const auto expected = values_of(code(x));
  const Executable program = prepared(x, code);
  for (size_t written = 0; written < expected.size(); ++written) {
    TensorList results = run(program, x);
    ASSERT_EQ(values_of(results), expected);
    EXPECT_TRUE(results[written].contiguous());
    fill_(results[written], Scalar(7.0));
    for (size_t i = 0; i < results.size(); ++i) {
      if (i == written) continue;
      EXPECT_EQ(results[i].to_host<float>(), expected[i]) << written << " wrote into " << i;
    }
  }
  EXPECT_EQ(values_of(run(program, x)), expected);
}

TEST(Execute, ABoundTensorGetsItsResultWhateverItOverlaps) {
  const TensorList x{random_tensor({8, 8}, 5)};
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor a = exp(in[0]);
    return {sub(a, transpose(in[0], 0, 1)), add(a, Scalar(1.0))};
  };
  const auto expected = values_of(code(x));
  const Executable program = prepared(x, code);
  TensorList bound{random_tensor({8, 8}, 6), random_tensor({8, 8}, 7)};
  EXPECT_EQ(run(program, x, bound)[0].impl(), bound[0].impl());
  EXPECT_EQ(values_of(bound), expected);
  const TensorList same{clone(x[0])};
  EXPECT_EQ(values_of(run(program, same, TensorList{same[0], Tensor()})), expected);
  EXPECT_EQ(same[0].to_host<float>(), expected[0]);
  const Tensor wide = random_tensor({8, 16}, 8);
  const TensorList parts{slice(wide, 1, 0, 8), slice(wide, 1, 8, 16)};
  EXPECT_EQ(values_of(run(program, x, parts)), expected);
  EXPECT_EQ(values_of(parts), expected);
}

// Like the update of a weight: the last step writes over the input if no later step reads it.
TEST(Execute, AResultIsWrittenOverTheInputThatItIsBoundTo) {
  const TensorList x{random_tensor({8, 8}, 5), random_tensor({8, 8}, 6)};
  const Program step = [](const TensorList& in) -> TensorList { return {sub(in[0], mul(in[1], Scalar(0.5)))}; };
  const Program reads = [](const TensorList& in) -> TensorList {
    const Tensor next = sub(in[0], mul(in[1], Scalar(0.5)));
    return {next, mul(in[0], next)};
  };
  for (const Program& code : {step, reads}) {
    const auto expected = values_of(code(x));
    const Executable program = prepared(x, code);
    const TensorList in{clone(x[0]), x[1]};
    TensorList bound(expected.size());
    bound[0] = in[0];
    const uint64_t before = Device::current().memory_stats().live;
    EXPECT_EQ(values_of(run(program, in, bound)), expected);
    EXPECT_EQ(in[0].to_host<float>(), expected[0]);
    EXPECT_EQ(Device::current().memory_stats().live, before);
  }
}

// A decoder's cache, as slices and as indices: the new values are written where the input lies.
TEST(Execute, StateStaysWhereItIs) {
  const Tensor place = Tensor::from<int64_t>(std::vector<int64_t>{5}, {1});
  const TensorList x{random_tensor({8, 6}, 1), random_tensor({1, 6}, 2)};
  const Program codes[] = {
      [](const TensorList& in) -> TensorList {
        const Tensor next = slice_scatter(in[0], in[1], 0, 3, 4);
        return {matmul(next, transpose(in[1], 0, 1)), next};
      },
      [](const TensorList& in) -> TensorList {
        const Tensor before = add(in[0], Scalar(1.0));
        const Tensor next =
            select_scatter(select_scatter(in[0], select(in[1], 0, 0), 0, 2), select(before, 1, 0), 1, 4);
        return {before, next};
      },
      [&](const TensorList& in) -> TensorList {
        const Tensor next = index_copy(mul(in[0], Scalar(0.5)), 0, place, in[1]);
        return {sum(next), next};
      },
  };
  for (const Program& code : codes) {
    const auto expected = values_of(code(x));
    const Executable program = prepare(record(x, code), {.over = {kNoInput, 0}});
    ASSERT_EQ(program.schedule->in_place, (std::vector<uint32_t>{kNoInput, 0}));
    const TensorList in{clone(x[0]), x[1]};
    const uint64_t live = Device::current().memory_stats().live;
    std::vector<StepExecution> executions;
    EXPECT_EQ(run(program, in, TensorList{Tensor(), in[0]}, &executions)[1].impl(), in[0].impl());
    for (const StepExecution& one : executions) EXPECT_NE(one.entry.op, kDenseCopy);
    EXPECT_EQ(Device::current().memory_stats().live, live);
    EXPECT_EQ(in[0].to_host<float>(), expected[1]);
    // Results elsewhere, or none: the input does not change.
    const TensorList apart{clone(x[0]), x[1]};
    const Tensor elsewhere = random_tensor({8, 6}, 9);
    EXPECT_EQ(values_of(run(program, apart, TensorList{Tensor(), elsewhere})), expected);
    EXPECT_EQ(values_of(run(program, apart)), expected);
    EXPECT_EQ(elsewhere.to_host<float>(), expected[1]);
    EXPECT_EQ(apart[0].to_host<float>(), x[0].to_host<float>());
  }
}

// The old state is a result, or a later step reads it, or it is written into the part; or a result is a view of it.
TEST(Execute, StateThatSomebodyElseLooksAtIsCopied) {
  const TensorList x{random_tensor({8, 6}, 1), random_tensor({1, 6}, 2)};
  const Program codes[] = {
      [](const TensorList& in) -> TensorList {
        return {in[0], slice_scatter(in[0], in[1], 0, 3, 4)};
      },
      [](const TensorList& in) -> TensorList {
        const Tensor next = slice_scatter(in[0], in[1], 0, 3, 4);
        return {mul(next, in[0]), next};
      },
      [](const TensorList& in) -> TensorList {
        const Tensor next = slice_scatter(in[0], slice(in[0], 0, 1, 5), 0, 2, 6);
        return {neg(next), next};
      },
      [](const TensorList& in) -> TensorList {
        return {slice(in[0], 0, 2, 5), slice_scatter(in[0], in[1], 0, 3, 4)};
      },
  };
  for (const Program& code : codes) {
    const auto expected = values_of(code(x));
    const Executable program = prepare(record(x, code), {.over = {kNoInput, 0}});
    EXPECT_EQ(program.schedule->in_place, (std::vector<uint32_t>{kNoInput, kNoInput}));
    const TensorList in{clone(x[0]), x[1]};
    EXPECT_EQ(values_of(run(program, in, TensorList{Tensor(), in[0]})), expected);
    EXPECT_EQ(in[0].to_host<float>(), expected[1]);
  }
}

// Two inputs in the same memory: a write into one would change the other.
TEST(Execute, StateThatAnotherInputSharesIsCopied) {
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor next = slice_scatter(in[0], slice(in[1], 0, 0, 1), 0, 3, 4);
    return {mul(next, in[1]), next};
  };
  const TensorList x{random_tensor({8, 6}, 1), random_tensor({8, 6}, 2)};
  const Executable program = prepare(record(x, code), {.over = {kNoInput, 0}});
  EXPECT_EQ(program.schedule->in_place, (std::vector<uint32_t>{kNoInput, 0}));
  const Tensor both = clone(x[0]);
  const auto expected = values_of(code({both, both}));
  EXPECT_EQ(values_of(run(program, TensorList{both, both}, TensorList{Tensor(), both})), expected);
  EXPECT_EQ(both.to_host<float>(), expected[1]);
}

// The values written in between lie in one block: one copy of the base, and none for each write.
TEST(Execute, AChainOfPartWritesCopiesItsBaseOnce) {
  const TensorList x{random_tensor({8, 6}, 1), random_tensor({1, 6}, 2)};
  const Program code = [](const TensorList& in) -> TensorList {
    Tensor state = in[0];
    for (int64_t row = 0; row < 8; ++row) state = slice_scatter(state, mul(in[1], Scalar(row + 1.0)), 0, row, row + 1);
    return {sum(state)};
  };
  const Executable program = prepared(x, code);
  EXPECT_EQ(segments(program), 1u);
  EXPECT_EQ(program.schedule->pieces.size(), 1u);
  std::vector<StepExecution> executions;
  EXPECT_EQ(values_of(run(program, x, {}, &executions)), values_of(code(x)));
  const auto copies = std::count_if(executions.begin(), executions.end(),
                                    [](const StepExecution& one) { return one.entry.op == kDenseCopy; });
  EXPECT_EQ(copies, 1);
}

TEST(Execute, ARunThatFailsPoisonsTheStateThatItCouldHaveWritten) {
  const TensorList x{random_tensor({8, 6}, 1), random_tensor({1, 6}, 2)};
  const auto at = [](int64_t row) { return Tensor::from<int64_t>(std::vector<int64_t>{row}, {1}); };
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor next = slice_scatter(in[0], in[1], 0, 3, 4);
    return {gather_slices(next, 0, in[2]), next};
  };
  const TensorList example{x[0], x[1], at(0)};
  const Executable program = prepare(record(example, code), {.over = {kNoInput, 0}});
  ASSERT_EQ(program.schedule->in_place[1], 0u);
  const Tensor state = clone(x[0]);
  const TensorList bad{state, x[1], at(9)}, good{clone(x[0]), x[1], at(2)};
  EXPECT_NE(status_of([&] {
              run(program, bad, TensorList{Tensor(), state});
            })
                .message()
                .find("index 9 is out of range"),
            std::string::npos);
  EXPECT_FALSE(status_of([&] { state.to_host<float>(); }).ok());
  EXPECT_FALSE(status_of([&] { run(program, bad, TensorList{Tensor(), state}); }).ok());
  const auto expected = values_of(code(good));
  EXPECT_EQ(values_of(run(program, good, TensorList{Tensor(), good[0]})), expected);
}

TEST(Execute, ARunRefusesInputsThatTheProgramWasNotPreparedFor) {
  const Executable program =
      prepared({random_tensor({2, 3}, 1)}, [](const TensorList& in) -> TensorList { return {relu(in[0])}; });
  const auto message = [&](const Tensor& input) {
    return status_of([&] { run(program, TensorList{input}); }).message();
  };
  EXPECT_EQ(message(random_tensor({3, 2}, 1)),
            "Input 0 of the program must be f32 [2, 3] on cpu:0, but f32 [3, 2] on cpu:0 was given.");
  EXPECT_EQ(message(cast(random_tensor({2, 3}, 1), DType::f64)),
            "Input 0 of the program must be f32 [2, 3] on cpu:0, but f64 [2, 3] on cpu:0 was given.");
  EXPECT_EQ(message(Tensor()),
            "Input 0 of the program must be f32 [2, 3] on cpu:0, but an undefined tensor was given.");
}

TEST(Execute, ExecutablesShareTheWeightsThatTheirPrimitivesHavePacked) {
  const Tensor weight = random_tensor({512, 512}, 9);
  const Program code = [&](const TensorList& in) -> TensorList { return {matmul(in[0], weight)}; };
  const TensorList few{random_tensor({32, 512}, 1)}, more{random_tensor({64, 512}, 2)};
  const uint64_t before = Device::current().memory_stats().packed;
  const Executable a = prepared(few, code);
  const uint64_t packed = Device::current().memory_stats().packed - before;
  const Executable again = prepared(few, code), b = prepared(more, code);
  EXPECT_EQ(Device::current().memory_stats().packed - before, packed);
  const auto close = [&](const Executable& program, const TensorList& x) {
    const auto results = values_of(run(program, x))[0], expected = values_of(code(x))[0];
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(results[i], expected[i], 1e-3f) << i;
  };
  close(a, few);
  close(again, few);
  close(b, more);
}

TEST(Execute, AnInputThatWantsAGradientGetsOne) {
  Tensor x = random_tensor({5}, 3);
  const Program code = [](const TensorList& in) -> TensorList { return {sum(mul(in[0], in[0]))}; };
  const Executable program = prepared({x}, code);
  x.requires_grad_();
  run(program, TensorList{x})[0].backward();
  EXPECT_EQ(x.grad().to_host<float>(), mul(x.detach(), Scalar(2.0)).to_host<float>());
}

TEST(Execute, ARecordedRunIsRecorded) {
  const TensorList x{random_tensor({5}, 3)};
  const Program code = [](const TensorList& in) -> TensorList { return {exp(neg(in[0]))}; };
  const Executable inner = prepared(x, code);
  const Executable outer = prepared(x, [&](const TensorList& in) -> TensorList { return {relu(run(inner, in)[0])}; });
  EXPECT_EQ(launches(outer), 3u);
  EXPECT_EQ(run(outer, x)[0].to_host<float>(), relu(code(x)[0]).to_host<float>());
}

// On a synchronous device the call fails, and everything that the run could have written is poisoned with the error.
class FailingRuns : public ::testing::Test {
 protected:
  static TensorList function(const TensorList& in) {
    return {relu(gather_slices(add(in[0], in[0]), 0, in[1])), neg(in[0])};
  }
  static Tensor indices(int64_t last) { return Tensor::from<int64_t>(std::vector<int64_t>{0, 2, last}, {3}); }

  const Tensor values = random_tensor({4}, 3);
  const Executable program = prepared({values, indices(1)}, function);
  const TensorList bound{random_tensor({3}, 1), random_tensor({4}, 2)};
};

TEST_F(FailingRuns, NameTheOpThatMetBadDataAndPoisonWhatTheyCouldHaveWritten) {
  const Status status = status_of([&] { run(program, TensorList{values, indices(9)}, bound); });
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(),
            "gather_slices: index 9 is out of range for an axis of length 4 (argument 'index').\n"
            "while running gather_slices(f32 [4], i64 [3]) on cpu:0");
  for (const Tensor& output : bound) {
    EXPECT_FALSE(status_of([&] { output.to_host<float>(); }).ok());
    EXPECT_FALSE(status_of([&] { relu(output); }).ok());
  }
  const TensorList good{values, indices(3)};
  EXPECT_EQ(values_of(run(program, good)), values_of(function(good)));
  run(program, good, bound);
  EXPECT_EQ(values_of(bound), values_of(function(good))) << "a run that overwrites its outputs heals them";
}

TEST_F(FailingRuns, OfAPoisonedInputDoNotRunAndHandThePoisonOn) {
  static_cast<void>(status_of([&] { run(program, TensorList{values, indices(9)}, bound); }));
  const Executable next =
      prepared({random_tensor({3}, 4)}, [](const TensorList& in) -> TensorList { return {relu(in[0])}; });
  const TensorList onward{random_tensor({3}, 5)};
  const Status status = status_of([&] { run(next, TensorList{bound[0]}, onward); });
  EXPECT_NE(status.message().find("index 9 is out of range"), std::string::npos) << status.message();
  EXPECT_FALSE(status_of([&] { onward[0].to_host<float>(); }).ok());
}

TEST_F(FailingRuns, EndBeforeTheNextLaunchWhenTheyAreCancelled) {
  const TensorList good{values, indices(3)};
  const Cancellation cancellation;
  {
    const CancellationScope scope(cancellation);
    run(program, good, bound);
    cancellation.cancel();
    const Status status = status_of([&] { run(program, good, bound); });
    EXPECT_EQ(status.code(), Code::cancelled);
    EXPECT_NE(status.message().find("The program cancelled this run before launch 1 of 4."), std::string::npos)
        << status.message();
    EXPECT_FALSE(status_of([&] { bound[0].to_host<float>(); }).ok());
  }
  EXPECT_EQ(values_of(run(program, good, bound)), values_of(function(good)));
}

TEST_F(FailingRuns, RefuseBindingsThatDoNotFit) {
  const vm::Segment& segment = *program.schedule->pieces[0].segment;
  const vm::Operand one{values.impl()->storage, 0, false, false};
  EXPECT_EQ(vm::run({&segment, std::span(&one, 1), 0}).message(), "A segment has 5 bindings, but a run gives 1.");
  const vm::Operand none[5] = {one, one, one, one, {}};
  EXPECT_EQ(vm::run({&segment, none, 0}).message(), "Binding 4 of a run on cpu:0 has no memory.");
}

TEST(SegmentBuilders, RefusePlacesThatNoRunHas) {
  const Executable program =
      prepared({random_tensor({3}, 4)}, [](const TensorList& in) -> TensorList { return {relu(in[0])}; });
  vm::SegmentBuilder builder(Device("cpu").state(), 2, nullptr);
  const NodeName name{{"relu"}, 0, {}, ""};
  const vm::SegmentAddress wrong[] = {vm::SegmentAddress::binding(0, 0), vm::SegmentAddress::binding(2, 0)};
  vm::SegmentLaunch launch;
  launch.primitive = program.schedule->pieces[0].segment->launches()[0].primitive;
  launch.operands = wrong;
  launch.name = &name;
  EXPECT_EQ(builder.add(launch).message(), "A launch of relu has an operand in binding 2, but the segment has 2.");
  const vm::SegmentAddress constant[] = {vm::SegmentAddress::binding(0, 0), vm::SegmentAddress::constant(0, 0)};
  launch.operands = constant;
  EXPECT_EQ(builder.add(launch).message(), "A launch of relu has an operand in constant 0, but the segment has 0.");
}

// An asynchronous fake with every primitive of the reference.
class FakeExecute : public ::testing::Test {
 protected:
  static Device device() {
    static const Device one = [] {
      async_control().memory = uint64_t{64} << 20;
      async_control().reference = async_control().packs = true;
      async_control().graphs = false;
      loader::register_provider("executing", fakes::async_query);
      return Device("executing:0");
    }();
    return one;
  }
  void SetUp() override {
    static_cast<void>(device());
    async_control().fail_launch = async_control().fail_allocation = async_control().fail_replay = -1;
    async_control().delay_us = 50;
  }
  void TearDown() override {
    device().synchronize();
    async_control().fail_launch = async_control().fail_allocation = async_control().fail_replay = -1;
    EXPECT_EQ(async_control().violation(), "");
  }
  static void clear_errors() {
    static_cast<void>(status_of([] { device().synchronize(); }));
  }
  static Tensor on_fake(const Dims& dims, uint32_t seed) { return random_tensor(dims, seed, device()); }
};

TEST_F(FakeExecute, ReplaysASegmentFromItsThirdRunOn) {
  const Program code = [](const TensorList& in) -> TensorList {
    return {sub(exp(in[0]), tanh(neg(in[1]))), add(in[0], in[1])};
  };
  const Executable program = prepared({on_fake({33}, 1), on_fake({33}, 2)}, code);
  for (uint32_t i = 0; i < 8; ++i) {
    const TensorList x{on_fake({33}, 10 + i), on_fake({33}, 20 + i)};
    const uint64_t replays = async_control().replays;
    EXPECT_EQ(values_of(run(program, x)), values_of(code(x)));
    EXPECT_EQ(async_control().replays - replays, i < 2 ? 0u : 1u) << i;
  }
  const Tensor both = on_fake({33}, 3);
  EXPECT_EQ(values_of(run(program, TensorList{both, both})), values_of(code({both, both})));
}

TEST_F(FakeExecute, ReplaysWriteStateWhereItLies) {
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor next = slice_scatter(mul(in[0], Scalar(0.5)), tanh(in[1]), 0, 2, 3);
    return {matmul(next, transpose(in[1], 0, 1)), next};
  };
  TensorList x{on_fake({8, 6}, 1), on_fake({1, 6}, 2)};
  const Executable program = prepare(record(x, code), {.over = {kNoInput, 0}});
  ASSERT_EQ(program.schedule->in_place[1], 0u);
  TensorList eager{clone(x[0]), x[1]};
  const uint64_t replays = async_control().replays;
  for (uint32_t i = 0; i < 6; ++i) {
    x[1] = eager[1] = on_fake({1, 6}, i + 3);
    const TensorList expected = code(eager);
    EXPECT_EQ(values_of(run(program, x, TensorList{Tensor(), x[0]})), values_of(expected)) << i;
    eager[0] = expected[1];
    EXPECT_EQ(x[0].to_host<float>(), eager[0].to_host<float>()) << i;
  }
  EXPECT_GT(async_control().replays, replays);
}

TEST_F(FakeExecute, ThreadsShareAProgramItsReplaysAndItsConstants) {
  const Tensor weight = on_fake({16, 16}, 5);
  const Program code = [&](const TensorList& in) -> TensorList {
    return {tanh(matmul(tanh(matmul(in[0], weight)), weight))};
  };
  const Executable program = prepared({on_fake({4, 16}, 1)}, code);
  std::vector<std::vector<float>> expected;
  for (uint32_t i = 0; i < 4; ++i) expected.push_back(code({on_fake({4, 16}, i)})[0].to_host<float>());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const TensorList x{on_fake({4, 16}, i)};
      for (int n = 0; n < 25; ++n) wrong += run(program, x)[0].to_host<float>() != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(FakeExecute, SeveralDevicesAndTheHostTakePartInOneProgram) {
  const TensorList x{on_fake({6, 4}, 1)};
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor there = tanh(in[0]);
    const Tensor here = exp(there.to(Device("cpu")));
    return {add(there, here.to(device())), neg(here)};
  };
  const Executable program = prepared(x, code);
  EXPECT_EQ(segments(program), 4u);
  EXPECT_EQ(values_of(run(program, x)), values_of(code(x)));
}

TEST_F(FakeExecute, ADeviceWithoutAPrimitiveRunsItsDecompositionInTheSegment) {
  async_control().reference = false;  // only the fake's few own primitives
  loader::register_provider("plain", fakes::async_query);
  const Device plain("plain:0");
  async_control().reference = true;
  const TensorList x{random_tensor({40}, 1, plain)};
  const Program code = [](const TensorList& in) -> TensorList { return {sub(relu(in[0]), Scalar(2.0))}; };
  std::vector<StepExecution> executions;
  const auto results = values_of(run(prepared(x, code), x, {}, &executions));
  EXPECT_EQ(results, values_of(code(x)));
  ExecutionScope scope;
  code(x);
  std::vector<std::string> eager, planned;
  for (const ExecutionEntry& entry : scope.take())
    eager.push_back(fmt::format("{} {}", entry.op, rung_name(entry.rung)));
  for (const StepExecution& one : executions)
    planned.push_back(fmt::format("{} {}", one.entry.op, rung_name(one.entry.rung)));
  EXPECT_EQ(planned, eager);
}

// State whose dims differ from the input in whose memory it lies, read by a separate step.
TEST_F(FakeExecute, TheHostReadsStateWhereItLies) {
  async_control().reference = false;
  loader::register_provider("scarce", fakes::async_query);
  const Device scarce("scarce:0");
  async_control().reference = true;
  const TensorList x{random_tensor({24}, 1, scarce), random_tensor({1, 6}, 2, scarce),
                     random_tensor({4, 6}, 3, scarce)};
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor next = slice_scatter(reshape(in[0], {4, 6}), in[1], 0, 3, 4);
    return {maximum(next, in[2]), reshape(next, {24})};
  };
  const Executable program = prepare(record(x, code), {.over = {kNoInput, 0}});
  ASSERT_EQ(program.schedule->in_place[1], 0u);
  ASSERT_EQ(program.schedule->pieces.back().segment, nullptr) << "the device has no maximum";
  const auto expected = values_of(code(x));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(values_of(run(program, x, TensorList{Tensor(), x[0]})), expected);
    EXPECT_EQ(x[0].to_host<float>(), expected[1]);
  }
}

// The host reads the constant in a separate step, after the result that is bound to the constant's tensor is made.
TEST_F(FakeExecute, AResultKeepsOffAConstantThatOnlyAStepByItselfReads) {
  async_control().reference = false;
  loader::register_provider("few", fakes::async_query);
  const Device few("few:0");
  async_control().reference = true;
  const TensorList x{random_tensor({4, 6}, 1, few), random_tensor({4, 6}, 3, few)};
  const Tensor table = random_tensor({4, 6}, 2, few);
  const Program code = [&](const TensorList& in) -> TensorList { return {relu(in[0]), maximum(table, in[1])}; };
  const Executable program = prepared(x, code);
  ASSERT_EQ(program.schedule->pieces.size(), 2u);
  ASSERT_EQ(program.schedule->pieces[1].segment, nullptr) << "the device has no maximum";
  const auto expected = values_of(code(x));
  EXPECT_EQ(values_of(run(program, x, TensorList{table, Tensor()})), expected);
  EXPECT_EQ(table.to_host<float>(), expected[0]);
}

TEST_F(FakeExecute, AFailureNamesItsNodeAndTheNextRunIsRight) {
  const Program code = [](const TensorList& in) -> TensorList {
    return {exp(gather(tanh(in[0]), 0, in[1])), neg(in[0])};
  };
  const Tensor x = on_fake({5}, 1);
  const Tensor good = Tensor::from<int64_t>(std::vector<int64_t>{4, 0, 2}, {3}, device());
  const Tensor bad = Tensor::from<int64_t>(std::vector<int64_t>{4, 5, 2}, {3}, device());
  Recorder recorder(device());
  const Graph graph = [&] {
    InterpreterScope scope(recorder);
    const TensorList in{recorder.input(DType::f32, {5}), recorder.input(DType::i64, {3})};
    recorder.label("node 3 (/embed/Gather)");
    return recorder.finish(code(in));
  }();
  const Executable program = prepare(graph);
  const auto expected = values_of(code({x, good}));
  for (int i = 0; i < 6; ++i) {  // plain runs, and replays
    const TensorList poisoned = run(program, TensorList{x, bad});
    const Status status = status_of([&] { poisoned[0].to_host<float>(); });
    EXPECT_NE(status.message().find("index 5 is out of range for an axis of length 5"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("node 3 (/embed/Gather) on executing:0"), std::string::npos) << status.message();
    clear_errors();
    EXPECT_EQ(values_of(run(program, TensorList{x, good})), expected);
  }
}

TEST_F(FakeExecute, RefusedLaunchesAndMissingMemoryLeaveTheNextRunRight) {
  const TensorList x{on_fake({64}, 1)};
  const Program code = [](const TensorList& in) -> TensorList {
    Tensor value = in[0];
    for (int i = 0; i < 5; ++i) value = tanh(add(value, in[0]));
    return {value, mean(value)};
  };
  const Executable program = prepared(x, code);
  const auto expected = values_of(code(x));
  for (int i = 0; i < 8; ++i) {  // the first run launches, the later ones replay a list
    async_control().fail_launch = async_control().fail_replay = 0;
    EXPECT_FALSE(status_of([&] { values_of(run(program, x)); }).ok()) << i;
    async_control().fail_launch = async_control().fail_replay = -1;
    clear_errors();
    EXPECT_EQ(values_of(run(program, x)), expected) << i;
  }
}

TEST_F(FakeExecute, WithoutMemoryARunTakesThatOfCommandLists) {
  async_control().memory = 1 << 20;
  loader::register_provider("small", fakes::async_query);
  const Device small("small:0");
  async_control().memory = uint64_t{64} << 20;
  const TensorList x{random_tensor({80 << 10}, 1, small)};  // 320 KiB
  const Program code = [](const TensorList& in) -> TensorList { return {sum(tanh(add(in[0], Scalar(1.0))))}; };
  const Executable one = prepared(x, code);
  const Executable other =
      prepared(x, [](const TensorList& in) -> TensorList { return {sum(mul(tanh(in[0]), tanh(neg(in[0]))))}; });
  const auto expected = values_of(run(one, x));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values_of(run(one, x)), expected);
  EXPECT_GT(async_control().command_lists, 0);
  for (int i = 0; i < 3; ++i) run(other, x)[0].wait();
  EXPECT_EQ(values_of(run(one, x)), expected);
}

TEST_F(FakeExecute, ACancelledRunEndsAndTheNextOneIsRight) {
  const TensorList x{on_fake({64}, 1)};
  const Program code = [](const TensorList& in) -> TensorList { return {exp(tanh(in[0])), neg(in[0])}; };
  const Executable program = prepared(x, code);
  const Tensor bound = on_fake({64}, 2);
  const Cancellation stop;
  stop.cancel();
  {
    const CancellationScope scope(stop);
    const Status status = status_of([&] {
      run(program, x, TensorList{bound, Tensor()});
      bound.wait();
    });
    EXPECT_EQ(status.code(), Code::cancelled) << status.message();
  }
  EXPECT_EQ(status_of([&] { bound.to_host<float>(); }).code(), Code::cancelled);
  EXPECT_EQ(values_of(run(program, x, TensorList{bound, Tensor()})), values_of(code(x)));
}

// Random programs with views, several results, constants and shared values, on the fake and on the CPU.
class RandomPrograms {
 public:
  explicit RandomPrograms(uint32_t seed, Device device) : random_(seed), weight_(random_tensor({4, 4}, seed, device)) {}

  TensorList operator()(const TensorList& in, uint32_t seed) {
    random_.seed(seed);
    TensorList all = in;
    all.push_back(weight_);
    for (int i = 0; i < 14; ++i) all.push_back(next(all));
    TensorList results;
    for (int i = 0; i < 3; ++i) results.push_back(pick(all));
    return results;
  }

 private:
  Tensor pick(const TensorList& all) { return all[random_() % all.size()]; }
  Tensor next(const TensorList& all) {
    const Tensor a = pick(all), b = pick(all);
    switch (random_() % 10) {
      case 0: return tanh(a);
      case 1: return add(a, b);
      case 2: return sub(a, b);
      case 3: return mul(a, tanh(b));
      case 4: return transpose(a, 0, 1);
      case 5: return matmul(tanh(a), tanh(b));
      case 6: return add(slice(a, 0, 0, 1), b);
      case 7: return reshape(reshape(a, {2, 8}), {4, 4});
      case 8: return softmax(a, -1);
      default: return maximum(select(a, 0, 2), b);
    }
  }
  std::mt19937 random_;
  Tensor weight_;
};

void expect_bits_of_eager(Device device, uint32_t count) {
  for (uint32_t seed = 0; seed < count; ++seed) {
    RandomPrograms programs(seed, device);
    const TensorList x{random_tensor({4, 4}, seed + 1, device), random_tensor({4, 4}, seed + 2, device)};
    const Program code = [&](const TensorList& in) { return programs(in, seed); };
    const auto expected = values_of(code(x));
    const Executable program = prepared(x, code);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(values_of(run(program, x)), expected) << "seed " << seed;
  }
}

TEST(Execute, RandomProgramsHaveTheBitsOfEagerRuns) { expect_bits_of_eager(Device::current(), 200); }
TEST_F(FakeExecute, RandomProgramsHaveTheBitsOfEagerRuns) { expect_bits_of_eager(device(), 100); }

}  // namespace
}  // namespace tenon::graph
