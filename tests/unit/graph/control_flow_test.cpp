// cond, while_loop and scan: eager, recorded, prepared, as texts; against plain C++ loops.
#include "core/graph/regions/control_flow.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "core/autograd/autograd.h"
#include "core/background/cancellation.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/regions/regions.h"
#include "core/graph/signature.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/graph/random_program.h"
#include "tests/unit/tensor/expect_error.h"

namespace tenon::graph {
namespace {

using testing::expect_error;

Tensor number(int64_t value) { return full({}, Scalar(value), DType::i64); }
Tensor number(float value) { return full({}, Scalar(static_cast<double>(value)), DType::f32); }
Tensor flag(bool value) { return full({}, Scalar(value), DType::boolean); }
Tensor index(int64_t value) { return full({1}, Scalar(value), DType::i64); }

Graph record(const TensorList& inputs, const Program& code) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
  Graph graph = recorder.finish(code(values));
  EXPECT_EQ(verify(graph).message(), "");
  return graph;
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  contiguous(tensor).copy_to_host(bytes.data());
  return bytes;
}

void expect_same(const TensorList& got, const TensorList& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), expected[i].dtype()) << what;
    EXPECT_EQ(got[i].dims(), expected[i].dims()) << what;
    EXPECT_EQ(bytes_of(got[i]), bytes_of(expected[i])) << what << ", result " << i;
  }
}

// Eager, recorded, optimised by exact passes, and parsed from text: all give the same bits.
void expect_everywhere(const TensorList& inputs, const Program& code) {
  const TensorList expected = code(inputs);
  Graph graph = record(inputs, code);
  expect_same(run(prepare(graph), inputs), expected, "recorded\n" + print(graph));
  expect_same(run(prepare(graph, {.scheduled = false}), inputs), expected, "walked");
  Graph again = parse(print(graph));
  EXPECT_EQ(print(again), print(parse(print(again))));
  EXPECT_EQ(verify(again).message(), "");
  expect_same(run(prepare(again), inputs), expected, "read back");
  optimise(&graph, {.exact = true});
  EXPECT_EQ(verify(graph).message(), "");
  expect_same(run(prepare(graph), inputs), expected, "optimised\n" + print(graph));
  expect_same(run(prepare(graph.copy()), inputs), expected, "copied");
}

TensorList two_branches(const TensorList& in, const Tensor& pred) {
  return cond(
      pred,
      [&](const TensorList& x) {
        return TensorList{relu(x[0]) + in[1], x[0]};
      },
      [&](const TensorList& x) {
        return TensorList{x[0] * in[1], in[1]};
      },
      {in[0]});
}

TEST(Cond, RunsTheBranchThatItsPredicateSays) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const TensorList in{random_tensor({3, 4}, seed), random_tensor({3, 4}, seed + 50), flag(seed % 2 == 0)};
    expect_everywhere(in, [](const TensorList& x) { return two_branches(x, x[2]); });
    const std::vector<float> a = in[0].to_host<float>(), b = in[1].to_host<float>();
    const std::vector<float> got = two_branches(in, in[2])[0].to_host<float>();
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(got[i], seed % 2 == 0 ? std::max(a[i], 0.0f) + b[i] : a[i] * b[i]);
    }
  }
}

TEST(Cond, CallsOneBranchEagerlyAndRecordsBoth) {
  int calls = 0;
  const Program code = [&](const TensorList& in) {
    return cond(
        in[1],
        [&] {
          ++calls;
          return TensorList{in[0] + 1.0};
        },
        [&] {
          ++calls;
          return TensorList{in[0] - 1.0};
        });
  };
  const TensorList in{random_tensor({2}, 1), flag(true)};
  code(in);
  EXPECT_EQ(calls, 1);
  const Graph graph = record(in, code);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(graph.size(), 1u) << print(graph);
}

// x doubles until its sum is above a limit; counts the steps.
TensorList doubled(const TensorList& in) {
  return while_loop([&](const TensorList& now) { return lt(sum(now[0]), in[1]); },
                    [&](const TensorList& now) {
                      return TensorList{now[0] * 2.0, now[1] + 1};
                    },
                    {in[0], number(int64_t{0})});
}

TEST(WhileLoop, RunsAsOftenAsAPlainLoop) {
  for (const float limit : {-1.0f, 20.0f, 1000.0f, 1e6f}) {
    const TensorList in{abs(random_tensor({5}, 3)), number(limit)};
    expect_everywhere(in, doubled);
    float total = 0;
    for (float x : in[0].to_host<float>()) total += x;
    int64_t steps = 0;
    for (; total < limit; total *= 2) ++steps;
    EXPECT_EQ(doubled(in)[1].item().to_int(), steps);
  }
}

TEST(WhileLoop, EndsAtItsLimit) {
  for (const int64_t most : {0, 3}) {
    const TensorList in{random_tensor({2}, 1)};
    const Program code = [&](const TensorList& x) {
      return while_loop([](const TensorList& now) { return full({}, Scalar(true), DType::boolean, now[0].device()); },
                        [](const TensorList& now) { return TensorList{now[0] + 1.0}; }, x, {.most = most});
    };
    expect_everywhere(in, code);
    expect_same(code(in), {in[0] + static_cast<double>(most)}, "plain");
  }
}

// The states swap places, and a part of the state is the input.
TEST(WhileLoop, StatesMayChangePlaces) {
  const TensorList in{random_tensor({3}, 1), random_tensor({3}, 2), random_tensor({3}, 3), number(int64_t{5})};
  expect_everywhere(in, [](const TensorList& x) {
    return while_loop([](const TensorList& s) { return gt(s[3], Scalar(0)); },
                      [&](const TensorList& s) {
                        return TensorList{s[1], s[0], x[2], s[3] - 1};
                      },
                      x);
  });
}

// A loop without a step, and a branch that returns its input, share memory with nothing.
TEST(ControlFlow, ResultsAreTensorsOfTheirOwn) {
  const TensorList in{random_tensor({3}, 1), flag(true)};
  const Program code = [](const TensorList& x) {
    TensorList results =
        while_loop([](const TensorList& s) { return logical_not(s[1]); }, [](const TensorList& s) { return s; }, x);
    const TensorList branch = cond(
        x[1],
        [&] {
          return TensorList{x[0], x[0]};
        },
        [&] {
          return TensorList{x[0], x[0]};
        });
    results.insert(results.end(), branch.begin(), branch.end());
    return results;
  };
  const std::string before = bytes_of(in[0]);
  for (TensorList results : {code(in), run(prepare(record(in, code)), in)}) {
    for (const size_t i : {0, 2, 3}) fill_(results[i], Scalar(static_cast<double>(i)));
    for (const size_t i : {0, 2, 3}) EXPECT_EQ(results[i].to_host<float>()[1], static_cast<float>(i));
    EXPECT_EQ(bytes_of(in[0]), before);
  }
}

// A result may be bound to the memory of a constant that a region reads later.
TEST(ControlFlow, ABoundResultKeepsOffConstantsOfRegions) {
  const Tensor constant = random_tensor({3}, 2);
  const TensorList in{random_tensor({3}, 1), flag(true)};
  const Program code = [&](const TensorList& x) {
    const Tensor first = x[0] + 1.0;
    const Tensor second = cond(
        x[1], [&] { return TensorList{first * constant}; }, [&] { return TensorList{x[0]}; })[0];
    return TensorList{first, second};
  };
  const Executable program = prepare(record(in, code));
  const TensorList expected = code(in);
  expect_same(run(program, in, TensorList{constant, Tensor()}), expected, "bound");
}

TensorList scanned(const TensorList& in) {
  const Scanned made = scan(
      [&](const TensorList& carry, const TensorList& x) {
        const Tensor next = tanh(carry[0] + x[0] * in[2]);
        return Scanned{{next, carry[1] + 1}, {next * 2.0, carry[1], x[0]}};
      },
      {in[0], number(int64_t{0})}, {in[1]});
  TensorList all = made.carry;
  all.insert(all.end(), made.ys.begin(), made.ys.end());
  return all;
}

TEST(Scan, GivesWhatAPlainLoopGives) {
  for (const int64_t length : {0, 1, 7}) {
    const TensorList in{random_tensor({4}, 1), random_tensor({length, 4}, 2), random_tensor({4}, 3)};
    expect_everywhere(in, scanned);
    const TensorList got = scanned(in);
    std::vector<float> carry = in[0].to_host<float>();
    const std::vector<float> x = in[1].to_host<float>(), w = in[2].to_host<float>();
    std::vector<float> ys;
    for (size_t t = 0; t < static_cast<size_t>(length); ++t) {
      for (size_t i = 0; i < 4; ++i) carry[i] = std::tanh(carry[i] + x[t * 4 + i] * w[i]);
      for (size_t i = 0; i < 4; ++i) ys.push_back(carry[i] * 2);
    }
    EXPECT_EQ(got[2].dims(), Dims({length, 4}));
    const std::vector<float> made = got[2].to_host<float>();
    for (size_t i = 0; i < ys.size(); ++i) EXPECT_NEAR(made[i], ys[i], 1e-5f);
    EXPECT_EQ(got[1].item().to_int(), length);
    EXPECT_EQ(bytes_of(got[4]), bytes_of(in[1]));
  }
}

TEST(Scan, WithNothingToSliceTakesItsLength) {
  const TensorList in{random_tensor({2}, 1)};
  expect_everywhere(in, [](const TensorList& x) {
    const Scanned made = scan(
        [](const TensorList& carry, const TensorList&) {
          return Scanned{{carry[0] * 2.0}, {carry[0]}};
        },
        x, {}, {.length = 4});
    return TensorList{made.carry[0], made.ys[0]};
  });
}

// A loop in a branch in a loop, which all read outer values.
TEST(ControlFlow, Nests) {
  const Program code = [](const TensorList& in) {
    return while_loop(
        [&](const TensorList& outer) { return lt(outer[1], in[1]); },
        [&](const TensorList& outer) {
          const Tensor odd = eq(remainder(outer[1], Scalar(int64_t{2})), Scalar(int64_t{1}));
          const Tensor half = in[0] * 0.5;
          const Tensor next = cond(
              odd,
              [&] {
                return TensorList{while_loop([&](const TensorList& inner) { return lt(inner[1], outer[1]); },
                                             [&](const TensorList& inner) {
                                               return TensorList{inner[0] * 0.75 + half, inner[1] + 1};
                                             },
                                             {outer[0], number(int64_t{0})})[0]};
              },
              [&] { return TensorList{outer[0] + in[0]}; })[0];
          return TensorList{next, outer[1] + 1};
        },
        {in[0] * 1.0, number(int64_t{0})});
  };
  for (const int64_t count : {0, 1, 6}) expect_everywhere({random_tensor({3}, 4), number(count)}, code);
}

TEST(ControlFlow, ErrorsNameBothTypes) {
  const TensorList in{random_tensor({4}, 1), flag(true), random_tensor({5}, 1)};
  expect_error(
      [&] {
        record(in, [](const TensorList& x) {
          return cond(
              x[1], [&] { return TensorList{x[0]}; }, [&] { return TensorList{x[2]}; });
        });
      },
      Code::invalid_argument, {"cond: both branches", "result 0 is f32 [4] on cpu:0 in the first and f32 [5]"});
  expect_error(
      [&] {
        record(in, [](const TensorList& x) {
          return cond(
              x[1], [&] { return TensorList{x[0]}; },
              [&] {
                return TensorList{x[0], x[0]};
              });
        });
      },
      Code::invalid_argument, {"the first gives 1 and the second 2"});
  const Program grows = [](const TensorList& x) {
    return while_loop([&](const TensorList&) { return logical_and(x[1], x[1]); },
                      [](const TensorList& s) {
                        return TensorList{concat({s[0], s[0]})};
                      },
                      {x[0]});
  };
  const std::vector<std::string> both{"while_loop: a step must keep the types of the state",
                                      "value 0 is f32 [4] on cpu:0", "f32 [8] on cpu:0 after it"};
  expect_error([&] { grows(in); }, Code::invalid_argument, both);
  expect_error([&] { record(in, grows); }, Code::invalid_argument, both);
  expect_error(
      [&] {
        cond(
            in[0], [&] { return in; }, [&] { return in; });
      },
      Code::invalid_argument, {"cond: the predicate must be one bool, but it is f32 [4] on cpu:0."});
  expect_error(
      [&] {
        record(in, [](const TensorList& x) {
          return cond(
              x[0], [&] { return TensorList{x[0]}; }, [&] { return TensorList{x[0]}; });
        });
      },
      Code::invalid_argument, {"cond: the predicate must be one bool, but it is f32 [4] on cpu:0."});
  expect_error(
      [&] {
        scan([](const TensorList& c, const TensorList&) { return Scanned{c, {}}; }, in, {});
      },
      Code::invalid_argument, {"needs the option length"});
  expect_error(
      [&] {
        scan([](const TensorList& c, const TensorList&) { return Scanned{c, {}}; }, {}, {in[0], in[2]});
      },
      Code::invalid_argument, {"xs[0] has 4 slices, but xs[1] has 5"});
  expect_error(
      [&] {
        while_loop([&](const TensorList&) { return in[1]; }, [](const TensorList& s) { return s; }, in, {.most = -2});
      },
      Code::invalid_argument, {"must not be negative, but it is -2"});
}

TEST(ControlFlow, WhatARegionCannotDoIsAnError) {
  const TensorList in{random_tensor({4}, 1), flag(true)};
  const auto branch = [&](const std::function<TensorList(const TensorList&)>& then_fn) {
    return record(in, [&](const TensorList& x) {
      return cond(
          x[1], [&] { return then_fn(x); }, [&] { return TensorList{x[0]}; });
    });
  };
  expect_error(
      [&] {
        branch([](const TensorList& x) {
          Tensor written = x[0];
          return TensorList{add_(written, Scalar(1.0))};
        });
      },
      Code::unsupported, {"add_: a tensor of shape [4] from outside the function 'then' of cond in recording"});
  expect_error([&] { branch([](const TensorList& x) { return TensorList{x[0] * x[0].to_host<float>()[0]}; }); },
               Code::invalid_argument, {"copy_to_host"});
  Tensor leaked;
  expect_error(
      [&] {
        record(in, [&](const TensorList& x) {
          cond(
              x[1], [&] { return TensorList{leaked = x[0] + 1.0}; }, [&] { return TensorList{x[0]}; });
          return TensorList{leaked * 2.0};
        });
      },
      Code::invalid_argument, {"is used outside of it"});
}

// A tensor that a function made and wrote belongs to that function.
TEST(ControlFlow, AFunctionMayWriteWhatItMade) {
  expect_everywhere({random_tensor({4, 2}, 1), number(int64_t{3})}, [](const TensorList& x) {
    return while_loop([](const TensorList& s) { return gt(s[1], Scalar(0)); },
                      [&](const TensorList& s) {
                        Tensor own = s[0] * 1.0;
                        Tensor column = select(own, 1, 0);
                        add_(column, select(x[0], 1, 1));
                        return TensorList{own, s[1] - 1};
                      },
                      x);
  });
}

// A view of an outer tensor that was written after the view was made.
TEST(ControlFlow, ReadsOuterViewsAsTheyAre) {
  expect_everywhere({random_tensor({4, 2}, 1), flag(true)}, [](const TensorList& x) {
    Tensor base = x[0] * 1.0;
    const Tensor view = select(base, 1, 0);
    add_(base, Scalar(2.0));
    Tensor seen;
    const Tensor first = cond(
        x[1],
        [&] {
          seen = slice(base, 0, 1, 3);
          return TensorList{view + sum(seen)};
        },
        [&] { return TensorList{view}; })[0];
    return TensorList{first, seen * 1.0, view + first};
  });
}

TEST(ControlFlow, HoldsForEverySizeItWasRecordedFor) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  const std::string symbols[] = {"length", ""}, none[] = {""};
  const Tensor xs = recorder.input(DType::f32, {3, 2}, symbols), init = recorder.input(DType::f32, {2}, none);
  const Tensor chosen = recorder.input(DType::boolean, Dims());
  const Program code = [](const TensorList& in) {
    const Scanned made = scan(
        [&](const TensorList& c, const TensorList& x) {
          return Scanned{{c[0] + x[0]}, {c[0] * sum(in[0])}};
        },
        {in[1]}, {in[0]});
    const Tensor picked = cond(
        in[2], [&] { return TensorList{in[0] * 2.0}; }, [&] { return TensorList{relu(in[0])}; })[0];
    return TensorList{made.carry[0], made.ys[0], picked};
  };
  const Graph graph = recorder.finish(code({xs, init, chosen}));
  const InterpreterScope eager(eager_interpreter());
  for (const int64_t length : {2, 3, 9}) {
    const TensorList in{random_tensor({length, 2}, 1), random_tensor({2}, 2), flag(length != 3)};
    symbolic::Values sizes(graph.arena());
    ASSERT_EQ(why_not(graph, in, &sizes), "");
    expect_same(run(prepare(graph, &sizes), in), code(in), print(graph));
  }
}

TEST(ControlFlow, GradientsPassThroughEagerFunctions) {
  const Tensor x = random_tensor({3}, 1).requires_grad_(), w = random_tensor({5, 3}, 2).requires_grad_();
  const Scanned made = scan(
      [&](const TensorList& c, const TensorList& s) {
        return Scanned{{c[0] * s[0]}, {c[0] + x}};
      },
      {x}, {w});
  const Tensor picked = cond(
      gt(sum(x), Scalar(-100.0)), [&] { return TensorList{made.ys[0] * 3.0}; },
      [&] { return TensorList{made.ys[0]}; })[0];
  (sum(picked) + sum(made.carry[0])).backward();
  const TensorList got{x.grad(), w.grad()};
  x.set_grad({});
  w.set_grad({});
  Tensor carry = x, total = sum(x) * 0.0;
  for (int64_t t = 0; t < 5; ++t) {
    total = total + sum(carry + x) * 3.0;
    carry = carry * select(w, 0, t);
  }
  (total + sum(carry)).backward();
  const std::vector<float> a[] = {got[0].to_host<float>(), got[1].to_host<float>()};
  const std::vector<float> b[] = {x.grad().to_host<float>(), w.grad().to_host<float>()};
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < a[k].size(); ++i) EXPECT_NEAR(a[k][i], b[k][i], 1e-4f * (1 + std::fabs(b[k][i])));
  }
}

// A run under the interpreter of gradients must see the ops inside of regions.
TEST(ControlFlow, GradientsPassThroughRunsOfGraphs) {
  const Program code = [](const TensorList& in) { return TensorList{scanned(in)[2]}; };
  const TensorList in{random_tensor({4}, 1), random_tensor({3, 4}, 2), random_tensor({4}, 3)};
  const Executable program = prepare(record(in, code));
  for (const Tensor& each : in) each.requires_grad_();
  sum(code(in)[0]).backward();
  const std::string expected = bytes_of(in[2].grad());
  in[2].set_grad({});
  sum(run(program, in)[0]).backward();
  EXPECT_EQ(bytes_of(in[2].grad()), expected);
}

// A run while something else is recorded is recorded too, with its regions.
TEST(ControlFlow, RunsOfGraphsAreRecordedAnew) {
  const TensorList in{abs(random_tensor({5}, 3)), number(50.0f)};
  const Executable program = prepare(record(in, doubled));
  const Graph around = record(in, [&](const TensorList& x) { return run(program, x); });
  EXPECT_NE(print(around).find("while_loop"), std::string::npos) << print(around);
  expect_same(run(prepare(around), in), doubled(in), print(around));
}

TEST(ControlFlow, ErrorsNameTheNodeInside) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  const Tensor x = recorder.input(DType::f32, {4}), at = recorder.input(DType::i64, {1});
  recorder.label("the loop");
  const TensorList made = while_loop([](const TensorList& s) { return gt(s[1], Scalar(0)); },
                                     [&](const TensorList& s) {
                                       recorder.label("the step");
                                       return TensorList{s[0] + index_select(s[0], 0, at), s[1] - 1};
                                     },
                                     {x, number(int64_t{3})});
  const Executable program = prepare(recorder.finish(made));
  const InterpreterScope eager(eager_interpreter());
  const Tensor given = random_tensor({4}, 1);
  EXPECT_NO_THROW(run(program, TensorList{given, index(2)})[0].to_host<float>());
  expect_error(
      [&] {
        run(program, TensorList{given, index(9)})[0].to_host<float>();
      },
      Code::invalid_argument, {"the step"});
  EXPECT_NO_THROW(run(program, TensorList{given, index(2)})[0].to_host<float>());
}

TEST(ControlFlow, ARunCanBeCancelledBetweenSteps) {
  const TensorList in{random_tensor({2}, 1), flag(true)};
  const Executable program = prepare(record(in, [](const TensorList& x) {
    return while_loop([](const TensorList& s) { return logical_and(s[1], s[1]); },
                      [](const TensorList& s) {
                        return TensorList{s[0] * 0.5, s[1]};
                      },
                      x);
  }));
  Cancellation stop;
  std::atomic<bool> entered{false};
  Status status;
  std::thread worker([&] {
    const CancellationScope scope(stop);
    entered = true;
    try {
      run(program, in);
    } catch (const Error& error) {
      status = error.status();
    }
  });
  while (!entered) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop.cancel();
  worker.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.message();
}

TEST(ControlFlow, TenThousandStepsTakeNoMoreMemoryThanTen) {
  const auto inputs = [](int64_t steps) { return TensorList{random_tensor({1 << 16}, 1), number(steps)}; };
  const Executable program = prepare(record(inputs(1), [](const TensorList& x) {
    const Scanned filled = scan(
        [](const TensorList& c, const TensorList&) {
          return Scanned{{c[0] * 0.5}, {}};
        },
        {x[0]}, {}, {.length = 3});
    return while_loop([&](const TensorList& s) { return lt(s[1], x[1]); },
                      [](const TensorList& s) {
                        return TensorList{relu(s[0] * 0.5) - s[0], s[1] + 1};
                      },
                      {filled.carry[0], number(int64_t{0})});
  }));
  const Device device = Device::current();
  const auto peak_after = [&](int64_t steps) {
    const TensorList made = run(program, inputs(steps));
    EXPECT_EQ(made[1].item().to_int(), steps);
    return device.memory_stats().peak;
  };
  const uint64_t few = peak_after(10);
  EXPECT_GT(few, uint64_t{3} << 18) << "the state before and after a step";
  EXPECT_EQ(peak_after(10000), few);
}

TEST(ControlFlow, ThreadsShareOneProgram) {
  const TensorList in{abs(random_tensor({5}, 3)), number(1000.0f)};
  const Executable program = prepare(record(in, doubled));
  const std::string expected = bytes_of(doubled(in)[0]);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) right += bytes_of(run(program, in)[0]) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

// The program without its header, after one pass.
std::string after(std::string_view pass, Graph graph) {
  find_pass(pass).run(&graph, {});
  EXPECT_EQ(verify(graph).message(), "");
  const std::string once = print(graph);
  find_pass(pass).run(&graph, {});
  EXPECT_EQ(print(graph), once) << "the pass is not idempotent";
  const std::string text = print(parse(once));
  return text.substr(text.find('\n') + 1);
}

TEST(RegionsPass, RegionsGetConstantsAndNothingThatTheyDoNotRead) {
  const Graph graph = parse(R"(graph "g"
%1 = input f32[2] on cpu:0
%2 = input bool[] on cpu:0
%3 = constant f32[2] on cpu:0 = 0000803f00000040
%4, %5 = cond(%2, %1, %3, %1, %3) : f32[2], f32[2]
  region then
    %1 = input f32[2] on cpu:0
    %2 = input f32[2] on cpu:0
    %3 = input f32[2] on cpu:0
    %4 = input f32[2] on cpu:0
    %5 = add(%1, %2) : f32[2]
    %6 = exp(%4) : f32[2]
    return %5, %6
  region else
    %1 = input f32[2] on cpu:0
    %2 = input f32[2] on cpu:0
    %3 = input f32[2] on cpu:0
    %4 = input f32[2] on cpu:0
    return %3, %1
return %4
)");
  EXPECT_EQ(after("regions", graph.copy()), R"(%1 = input f32[2] on cpu:0
%2 = input bool[] on cpu:0
%3 = cond(%2, %1) : f32[2]
  region then
    %1 = input f32[2] on cpu:0
    %2 = constant f32[2] on cpu:0 = 0000803f00000040
    %3 = add(%1, %2) : f32[2]
    return %3
  region else
    %1 = input f32[2] on cpu:0
    return %1
return %3
)");
}

TEST(RegionsPass, AKnownBranchTakesThePlaceOfItsNode) {
  const Graph graph = parse(R"(graph "g"
%1 = input f32[2] on cpu:0
%2 = constant bool[] on cpu:0 = 00
%3, %4 = cond(%2, %1) : f32[2], f32[2]
  region then
    %1 = input f32[2] on cpu:0
    return %1, %1
  region else
    %1 = input f32[2] on cpu:0
    %2 = exp(%1) : f32[2] label "inside"
    return %2, %1
return %3, %4
)");
  EXPECT_EQ(after("regions", graph.copy()), R"(%1 = input f32[2] on cpu:0
%2 = exp(%1) : f32[2] label "inside"
return %2, %1
)");
}

// A state remains, even if it is a constant at first: the next step has another value.
TEST(RegionsPass, ConstantsThatStepsChangeStay) {
  const std::string text = R"(%1 = constant f32[] on cpu:0 = 0000803f
%2 = while_loop(%1) : f32[]
  region cond
    %1 = input f32[] on cpu:0
    %2 = lt(%1, _) scalars (0, 0x1.4p+3) : bool[]
    return %2
  region body
    %1 = input f32[] on cpu:0
    %2 = mul(%1, _) scalars (0, 0x1p+1) : f32[]
    return %2
return %2
)";
  EXPECT_EQ(after("regions", parse("graph \"g\"\n" + text)), text);
  EXPECT_EQ(after("fold_constants", parse("graph \"g\"\n" + text)), text);
  EXPECT_EQ(run(prepare(parse("graph \"g\"\n" + text)), {})[0].item().to_double(), 16.0);
}

// An asynchronous device in addition to the host.
class FakeControlFlow : public ::testing::Test {
 protected:
  static Device device() {
    static const Device one = [] {
      fakes::async_control().memory = uint64_t{64} << 20;
      fakes::async_control().reference = true;
      fakes::async_control().graphs = false;
      loader::register_provider("controlling", fakes::async_query);
      return Device("controlling:0");
    }();
    return one;
  }
  void SetUp() override {
    static_cast<void>(device());
    fakes::async_control().delay_us = 50;
  }
  void TearDown() override {
    device().synchronize();
    EXPECT_EQ(fakes::async_control().violation(), "");
  }
};

// The predicate and the counter are on the host, the state on the device.
TEST_F(FakeControlFlow, RunsOverSeveralDevices) {
  const TensorList in{abs(random_tensor({5}, 3)).to(device()), number(40.0f), random_tensor({3, 5}, 4).to(device())};
  const Program code = [](const TensorList& x) {
    const TensorList grown = while_loop([&](const TensorList& s) { return lt(sum(s[0].to(Device::host())), x[1]); },
                                        [&](const TensorList& s) {
                                          return TensorList{s[0] * 1.5, s[1] + 1};
                                        },
                                        {x[0], number(int64_t{0})});
    const Scanned made = scan(
        [](const TensorList& c, const TensorList& s) {
          return Scanned{{tanh(c[0] + s[0])}, {c[0], sum(c[0] * s[0]).to(Device::host())}};
        },
        {grown[0]}, {x[2]});
    const Tensor picked = cond(
        any(gt(made.carry[0].to(Device::host()), Scalar(2.0))), [&] { return TensorList{neg(made.ys[0])}; },
        [&] { return TensorList{made.ys[0]}; })[0];
    return TensorList{picked, grown[1], made.ys[1], made.carry[0]};
  };
  const TensorList expected = code(in);
  Recorder recorder(device());
  const Graph graph = [&] {
    InterpreterScope scope(recorder);
    TensorList values;
    for (const Tensor& each : in) values.push_back(recorder.input(each.dtype(), each.dims(), each.device()));
    return recorder.finish(code(values));
  }();
  const Executable program = prepare(parse(print(graph)));
  for (int i = 0; i < 5; ++i) {
    const TensorList got = run(program, in);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(got[k].device(), expected[k].device());
    expect_same(got, expected, print(graph));
  }
}

// A step that fails on the device poisons the predicate or the results of the loop; the error names the node inside.
TEST_F(FakeControlFlow, AFailureInAStepIsFoundAndTheNextRunIsRight) {
  Recorder recorder(device());
  const Graph graph = [&] {
    InterpreterScope scope(recorder);
    const Tensor x = recorder.input(DType::f32, {5}), at = recorder.input(DType::i64, {1});
    const Tensor steps = recorder.input(DType::i64, Dims(), Device::host());
    recorder.label("the loop");
    return recorder.finish(while_loop([](const TensorList& s) { return gt(s[1], Scalar(int64_t{0})); },
                                      [&](const TensorList& s) {
                                        recorder.label("the step");
                                        return TensorList{s[0] + gather(s[0], 0, at), s[1] - 1};
                                      },
                                      {x, steps}));
  }();
  const Executable program = prepare(graph);
  const Tensor x = random_tensor({5}, 1).to(device());
  for (int i = 0; i < 3; ++i) {
    const Status status = testing::error_of([&] {
      run(program, TensorList{x, index(7).to(device()), number(int64_t{3})})[0].to_host<float>();
    });
    EXPECT_NE(status.message().find("index 7 is out of range"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("the step on controlling:0"), std::string::npos) << status.message();
    static_cast<void>(testing::error_of([] { device().synchronize(); }));
    EXPECT_NO_THROW(run(program, TensorList{x, index(2).to(device()), number(int64_t{3})})[0].to_host<float>());
  }
}

}  // namespace
}  // namespace tenon::graph
