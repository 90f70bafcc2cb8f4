// The eager interpreter on the cpu provider, compared with plain loops.
#include "core/interpreter/eager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "core/primitive/primitive_cache.h"

namespace tenon {
namespace {

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(0.25f, 2.0f);
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = (i % 2 == 0 ? 1.0f : -1.0f) * values(engine);
  return out;
}

Tensor random_tensor(const Dims& dims, uint32_t seed, const char* device = "cpu") {
  const std::vector<float> values = random_floats(static_cast<size_t>(element_count(dims)), seed);
  return Tensor::from<float>(values, dims, Device(device));
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(Eager, AddsTensorsOfOneShape) {
  const std::vector<float> a = random_floats(1000, 1);
  const std::vector<float> b = random_floats(1000, 2);
  const Tensor ta = Tensor::from<float>(a, {10, 100}, Device("cpu"));
  const Tensor tb = Tensor::from<float>(b, {10, 100}, Device("cpu"));
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::vector<float> sum = add(ta, tb).to_host<float>();
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(sum[i], a[i] + b[i]) << i;
  }
}

TEST(Eager, OneClassServesEveryShape) {
  for (int64_t n = 1; n < 70; ++n) {
    const Tensor x = random_tensor({n}, static_cast<uint32_t>(n));
    const std::vector<float> in = x.to_host<float>();
    const std::vector<float> out = relu(x).to_host<float>();
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], std::max(in[i], 0.0f)) << "n " << n << " element " << i;
  }
}

TEST(Eager, BroadcastsStridesAndScalars) {
  const Tensor a = random_tensor({3, 4}, 5);
  const Tensor b = random_tensor({4, 3}, 6);
  const Tensor row = random_tensor({4}, 7);
  const std::vector<float> va = a.to_host<float>(), vb = b.to_host<float>(), vr = row.to_host<float>();
  const std::vector<float> product = mul(a, transpose(b, 0, 1)).to_host<float>();
  const std::vector<float> shifted = sub(a, row).to_host<float>();
  const std::vector<float> scaled = mul(a, 2.5).to_host<float>();
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(product[i * 4 + j], va[i * 4 + j] * vb[j * 3 + i]);
      EXPECT_EQ(shifted[i * 4 + j], va[i * 4 + j] - vr[j]);
      EXPECT_EQ(scaled[i * 4 + j], va[i * 4 + j] * 2.5f);
    }
  }
}

TEST(Eager, WritesInPlaceAndBumpsTheVersion) {
  Tensor x = random_tensor({5, 5}, 8);
  const std::vector<float> before = x.to_host<float>();
  const Tensor view = select(x, 0, 2);
  for (int repeat = 0; repeat < 2; ++repeat) relu_(x);
  const std::vector<float> after = x.to_host<float>();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], std::max(before[i], 0.0f));
  EXPECT_EQ(view.to_host<float>()[1], after[11]);
}

// The first call learns the class; from the second call on the interpreter takes the class path, which must check
// overlap too.
TEST(Eager, AnOutputThatOverlapsItsInputGetsTheOldValuesEachTime) {
  constexpr int64_t n = 1000;  // long enough that a kernel reads elements that it has already written
  for (int call = 0; call < 3; ++call) {
    const Tensor whole = random_tensor({n + 1}, 9 + static_cast<uint32_t>(call));
    const std::vector<float> before = whole.to_host<float>();
    const Tensor source = slice(whole, 0, 0, n);
    Tensor target = slice(whole, 0, 1, n + 1);
    neg_out(target, source);
    const std::vector<float> after = whole.to_host<float>();
    EXPECT_EQ(after[0], before[0]);
    for (size_t i = 1; i <= n; ++i) ASSERT_EQ(after[i], -before[i - 1]) << "call " << call << " element " << i;
  }
}

// The second and third input overlap the output, in tensors long enough for kernels that work in blocks and on threads.
TEST(Eager, NoInputMayOverlapAnOutputUnseen) {
  constexpr int64_t n = 70001;
  for (int call = 0; call < 3; ++call) {
    const Tensor whole = random_tensor({n + 7}, 40 + static_cast<uint32_t>(call));
    const Tensor other = random_tensor({n}, 50);
    const std::vector<float> before = whole.to_host<float>(), factors = other.to_host<float>();
    Tensor target = slice(whole, 0, 7, n + 7);
    sub_out(target, other, slice(whole, 0, 0, n));
    std::vector<float> after = target.to_host<float>();
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(after[i], factors[i] - before[i]) << "call " << call << " element " << i;
    clamp_out(target, other, slice(whole, 0, 0, n), slice(whole, 0, 5, n + 5));
    const std::vector<float> low = [&] {
      std::vector<float> all(before.begin(), before.begin() + 7);
      all.insert(all.end(), after.begin(), after.end());
      return all;
    }();
    after = target.to_host<float>();
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(after[i], std::min(std::max(factors[i], low[i]), low[i + 5])) << "call " << call << " element " << i;
    }
  }
}

TEST(Eager, WritesStridedOutputs) {
  const Tensor base = random_tensor({4, 6}, 10);
  const Tensor a = random_tensor({6, 4}, 11);
  Tensor target = transpose(base, 0, 1);
  exp_out(target, a);
  const std::vector<float> in = a.to_host<float>(), out = base.to_host<float>();
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(out[j * 6 + i], std::exp(in[i * 4 + j]), 2e-6 * std::exp(in[i * 4 + j]));
  }
}

// The first call learns the class, the others find it.
TEST(Eager, BroadcastsIntoGivenResultsOfTheirShapeAlone) {
  struct Case {
    Dims a, b, out;
    bool fits;
  };
  const Case cases[] = {{{2, 3}, {3}, {2, 3}, true},          {{2, 1}, {1, 3}, {2, 3}, true},
                        {{3}, {2, 3}, {2, 3}, true},          {{1, 3}, {1, 3}, {1, 3}, true},
                        {{}, {2, 3}, {2, 3}, true},           {{}, {}, {}, true},
                        {{4, 1, 3}, {2, 1}, {4, 2, 3}, true}, {{2, 3}, {3}, {3}, false},
                        {{1, 3}, {1, 3}, {2, 3}, false},      {{3}, {3}, {1, 3}, false},
                        {{2, 3}, {2, 3}, {2, 1}, false},      {{2, 1}, {2, 1}, {2, 3}, false}};
  for (int call = 0; call < 3; ++call) {
    for (const Case& each : cases) {
      const Tensor a = random_tensor(each.a, 60), b = random_tensor(each.b, 61);
      Tensor out = full(each.out, Scalar(std::nan("")), DType::f32, Device("cpu"));
      if (!each.fits) {
        const std::string text = message_of([&] { sub_out(out, a, b); });
        EXPECT_NE(text.find("sub: the result of shape"), std::string::npos) << text;
        continue;
      }
      sub_out(out, a, b);
      const std::vector<float> x = a.to_host<float>(), y = b.to_host<float>(), got = out.to_host<float>();
      const auto at = [&](const std::vector<float>& values, const Dims& dims, int64_t place) {
        int64_t offset = 0, stride = 1;
        for (int32_t axis = each.out.rank() - 1, own = dims.rank() - 1; axis >= 0; --axis, --own) {
          const int64_t index = place % each.out[axis];
          place /= each.out[axis];
          if (own < 0) continue;
          if (dims[own] != 1) offset += index * stride;
          stride *= dims[own];
        }
        return values[static_cast<size_t>(offset)];
      };
      for (int64_t i = 0; i < out.elements(); ++i) {
        ASSERT_EQ(got[static_cast<size_t>(i)], at(x, each.a, i) - at(y, each.b, i))
            << to_string(each.a) << " " << to_string(each.b) << " " << i;
      }
    }
  }
}

// Sorting kernels have a workspace.
TEST(Eager, LaunchesWithAWorkspaceAgainAndAgain) {
  for (uint32_t call = 0; call < 4; ++call) {
    const Tensor x = random_tensor({3, 40}, 80 + call);
    const auto [values, positions] = topk(x, 4);
    const Tensor places = nonzero(gt(x, Scalar(0)));
    const std::vector<float> in = x.to_host<float>(), most = values.to_host<float>();
    const std::vector<int64_t> where = positions.to_host<int64_t>(), rows = places.to_host<int64_t>();
    std::vector<int64_t> wanted;
    for (size_t row = 0; row < 3; ++row) {
      std::vector<float> line(in.begin() + static_cast<ptrdiff_t>(row * 40),
                              in.begin() + static_cast<ptrdiff_t>(row * 40 + 40));
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(line[static_cast<size_t>(where[row * 4 + k])], most[row * 4 + k]);
      for (size_t i = 0; i < 40; ++i) {
        if (line[i] > 0) wanted.insert(wanted.end(), {static_cast<int64_t>(row), static_cast<int64_t>(i)});
      }
      std::sort(line.begin(), line.end(), std::greater<>());
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(line[k], most[row * 4 + k]) << "call " << call;
    }
    EXPECT_EQ(rows, wanted) << "call " << call;
  }
}

// Planes of many short rows, which are cut into pieces.
TEST(Eager, CopiesShortRowsInAnotherOrder) {
  constexpr int64_t n = 9000;
  const Tensor x = random_tensor({2, n, 3, 2}, 90);
  const std::vector<float> in = x.to_host<float>();
  const std::vector<float> out = contiguous(permute(x, {0, 2, 1, 3})).to_host<float>();
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < 2; ++k) {
          ASSERT_EQ(out[static_cast<size_t>(((a * 3 + b) * n + i) * 2 + k)],
                    in[static_cast<size_t>(((a * n + i) * 3 + b) * 2 + k)])
              << a << " " << b << " " << i << " " << k;
        }
      }
    }
  }
}

TEST(Eager, ReadsTheOneElementOfAView) {
  const Tensor x = Tensor::from({{1.5, -2.25}, {3.75, 4}}, DType::none, Device("cpu"));
  EXPECT_EQ(x[1][0].item<float>(), 3.75F);
  EXPECT_EQ(cast(x, DType::f16)[0][1].item<float>(), -2.25F);
  EXPECT_EQ(cast(x, DType::i64)[1][1].item<int64_t>(), 4);
  EXPECT_TRUE(gt(x, Scalar(0))[0][0].item<bool>());
  EXPECT_FALSE(gt(x, Scalar(0))[0][1].item<bool>());
}

TEST(Eager, MultipliesMatricesLikeALoop) {
  const Tensor a = random_tensor({7, 5}, 12);
  const Tensor b = random_tensor({5, 9}, 13);
  const std::vector<float> va = a.to_host<float>(), vb = b.to_host<float>(), vc = matmul(a, b).to_host<float>();
  for (size_t m = 0; m < 7; ++m) {
    for (size_t n = 0; n < 9; ++n) {
      double sum = 0;
      for (size_t k = 0; k < 5; ++k) sum += static_cast<double>(va[m * 5 + k]) * vb[k * 9 + n];
      EXPECT_NEAR(vc[m * 9 + n], sum, 1e-5);
    }
  }
}

TEST(Eager, SettlesEmptyTensors) {
  const Tensor x = Tensor::empty({0, 3}, DType::f32, Device("cpu"));
  EXPECT_EQ(relu(x).dims(), (Dims{0, 3}));
  EXPECT_EQ(matmul(x, random_tensor({3, 2}, 1)).dims(), (Dims{0, 2}));
}

TEST(Eager, NamesBothDevicesWhenTheyDiffer) {
  const Tensor a = random_tensor({2}, 1);
  const Tensor b = random_tensor({2}, 1, "null");
  EXPECT_EQ(message_of([&] { add(a, b); }),
            "add: expected all tensors to be on the same device, but found cpu:0 (argument 'input') and null:0 "
            "(argument 'other').");
}

TEST(Eager, SaysWhichShapesDoNotMatch) {
  EXPECT_EQ(message_of([] {
              matmul(random_tensor({4, 25}, 1), random_tensor({256, 3}, 2));
            }),
            "matmul: columns of a (25) do not match rows of b (256).");
  const std::string text = message_of([] { add(random_tensor({2, 3}, 1), random_tensor({4}, 2)); });
  EXPECT_NE(text.find("[2, 3]"), std::string::npos) << text;
  EXPECT_NE(text.find("[4]"), std::string::npos) << text;
}

TEST(Eager, SaysWhichShapesCannotBeJoined) {
  for (const bool wants_gradient : {false, true}) {
    const Tensor a = random_tensor({2, 3}, 1).requires_grad_(wants_gradient), b = random_tensor({3, 2}, 2);
    EXPECT_EQ(message_of([&] {
                concat({a, b}, 0);
              }),
              "concat: shapes must be equal except along axis 0, but number 0 has shape [2, 3] and number 1 [3, 2].");
    EXPECT_EQ(message_of([&] {
                concat({a, reshape(b, 6)}, 0);
              }),
              "concat: all tensors must have one rank, but number 0 has shape [2, 3] and number 1 [6].");
    EXPECT_EQ(message_of([&] { stack({a, b}); }), "stack: shapes [2, 3] and [3, 2] differ.");
    EXPECT_EQ(concat({a, reshape(b, {2, 3})}, 1).dims(), (Dims{2, 6}));
  }
}

TEST(Eager, AFaultNamesTheBadValueAndTheNextCallWorks) {
  const Tensor x = random_tensor({4, 2}, 3);
  const std::vector<int64_t> bad{0, 7};
  const std::string text = message_of([&] { gather_slices(x, 0, Tensor::from<int64_t>(bad, {2}, Device("cpu"))); });
  EXPECT_NE(text.find("index 7 is out of range for an axis of length 4"), std::string::npos) << text;
  const std::vector<int64_t> good{3, -4};
  EXPECT_EQ(gather_slices(x, 0, Tensor::from<int64_t>(good, {2}, Device("cpu"))).dims(), (Dims{2, 2}));
}

TEST(Eager, IntegersAreNotDividedByZeroAndTheLeastOneWraps) {
  const std::vector<int32_t> a{INT32_MIN, 6}, b{-1, 3}, zero{1, 0};
  const auto tensor = [](const std::vector<int32_t>& v) { return Tensor::from<int32_t>(v, {2}, Device("cpu")); };
  EXPECT_EQ(floor_divide(tensor(a), tensor(b)).to_host<int32_t>(), (std::vector<int32_t>{INT32_MIN, 2}));
  EXPECT_NE(message_of([&] { floor_divide(tensor(a), tensor(zero)); }).find("by zero"), std::string::npos);
}

TEST(Eager, RefusesDimsThatOverflow) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(message_of([&] {
              Tensor::empty({huge, huge}, DType::f32, Device("cpu"));
            }),
            "A tensor of shape [1099511627776, 1099511627776] and dtype f32 cannot be made: its size in bytes is more "
            "than 2^63 - 1.");
  EXPECT_NE(message_of([&] {
              Tensor::empty({3, -1}, DType::f32, Device("cpu"));
            }).find("-1 is negative"),
            std::string::npos);
}

TEST(Eager, CachesStayWithinTheirBytesUnderManyShapes) {
  DeviceState* device = Device("cpu").state();
  for (int64_t n = 1; n <= 3000; ++n) {
    const Tensor x = random_tensor({n % 60 + 1, n / 60 + 1}, static_cast<uint32_t>(n));
    sum(x, {1});
  }
  const PrimitiveCacheStats stats = primitive_cache_stats(device);
  EXPECT_LE(stats.bytes, stats.byte_limit);
}

TEST(ExecutionReport, ListsWhatRanWhereInOrder) {
  const Tensor x = random_tensor({3, 3}, 4);
  ExecutionScope scope;
  matmul(relu(x), x);
  const std::vector<ExecutionEntry> entries = scope.take();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].op, "relu");
  EXPECT_EQ(entries[1].op, "matmul");
  EXPECT_EQ(entries[1].device, "cpu:0");
  EXPECT_EQ(entries[1].rung, Rung::native);
  EXPECT_FALSE(entries[1].implementation.empty());
}

// The validation layer compares the shapes of each launch with those of the primitive.
TEST(Eager, AStridedOutputTeachesNothingOfContiguousOnes) {
  std::thread([] {  // a new thread has empty tables
    clear_primitive_cache(Device("cpu").state());
    const Tensor x = random_tensor({3, 4}, 1);
    Tensor target = transpose(zeros({4, 3}, DType::f32, Device("cpu")), 0, 1);
    neg_out(target, x);
    EXPECT_EQ(target.to_host<float>(), neg(x).to_host<float>());
    const Tensor flat = random_tensor({4}, 2);
    const std::vector<float> values = flat.to_host<float>(), got = neg(flat).to_host<float>();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], -values[i]);
  })
      .join();
}

TEST(ExecutionReport, CountsLaunchesOfThreadsThatAreGone) {
  const auto launches = [] {
    uint64_t count = 0;
    for (const ExecutionEntry& entry : execution_report()) {
      if (entry.op == "tanh") count += entry.launches;
    }
    return count;
  };
  const uint64_t before = launches();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      const Tensor x = random_tensor({8}, i);
      for (int repeat = 0; repeat < 10; ++repeat) tanh(x);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(launches() - before, 30u);
}

}  // namespace
}  // namespace tenon
