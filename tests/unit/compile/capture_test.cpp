// Tensors from outside as state: read at each run, written in place, through views, frozen.
#include "core/interpreter/execution_report.h"
#include "core/tensor/generator.h"
#include "core/vm/storage.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

TEST(Capture, IsReadAtEachCall) {
  Tensor w = random_tensor({3}, 1);
  auto step = compile([&](const Tensor& x) { return x * w; });
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(elements(step(x)), elements(x * w)) << "call " << i;
    add_(w, 1.0);
  }
}

TEST(Capture, IsWrittenInPlaceOncePerRun) {
  Tensor w = random_tensor({3}, 1), eager = clone(w);
  auto step = compile([&](const Tensor& x) {
    sub_(w, x * 0.5);
    const Tensor doubled = w * 2.0;
    mul_(w, 0.25);
    return doubled;
  });
  const Tensor x = random_tensor({3}, 2);
  uint64_t version = 0;
  for (int i = 0; i < 4; ++i) {
    if (i == 2) version = w.impl()->storage.version();
    sub_(eager, x * 0.5);
    EXPECT_EQ(elements(step(x)), elements(eager * 2.0));
    mul_(eager, 0.25);
    EXPECT_EQ(elements(w), elements(eager));
  }
  EXPECT_EQ(w.impl()->storage.version(), version + 2) << "one write per run";
}

TEST(Capture, IsWrittenThroughViewsThatWereMadeInside) {
  Tensor w = random_tensor({4, 6}, 1), eager = clone(w);
  const auto function = [](Tensor& state, const Tensor& x) {
    Tensor part = slice(transpose(state, 0, 1), 0, 1, 4, 1);  // [3, 4]
    copy_(part, x);
    Tensor row = select(state, 0, 2);
    add_(row, 1.0);
    return sum(state);
  };
  auto step = compile([&](const Tensor& x) { return function(w, x); }, {.exact = true});
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor x = random_tensor({3, 4}, i + 5);
    EXPECT_EQ(elements(step(x)), elements(function(eager, x)));
    EXPECT_EQ(elements(w), elements(eager));
  }
}

// Views made outside, which overlap. Each line is one way to view a part of 24 elements.
TEST(Capture, OverlappingViewsFromOutsideAreOneBase) {
  const auto views_of = [](const Tensor& whole) -> TensorList {
    const Tensor matrix = reshape(whole, {4, 6});
    return {matrix,
            transpose(matrix, 0, 1),
            slice(matrix, 0, 1, 3, 1),
            slice(matrix, 1, 2, 5, 1),
            slice(matrix, 1, 0, 6, 2),
            select(matrix, 1, 5),
            select(select(matrix, 0, 3), 0, 1),
            unsqueeze(slice(whole, 0, 3, 9, 1), 0),
            permute(reshape(whole, {2, 3, 4}), {2, 0, 1}),
            slice(slice(matrix, 0, 1, 4, 2), 1, 1, 6, 3)};
  };
  Tensor state = random_tensor({24}, 1), eager = clone(state);
  const auto function = [](const TensorList& views, const Tensor& x) {
    TensorList sums;
    for (Tensor view : views) {
      add_(view, x);
      sums.push_back(clone(view));
    }
    return sums;
  };
  const TensorList views = views_of(state), eager_views = views_of(eager);
  auto step = compile([&](const TensorList& in) { return function(views, in[0]); }, {.exact = true});
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor x = random_tensor({}, i + 5);
    const TensorList out = step({x}), expected = function(eager_views, x);
    for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(elements(out[k]), elements(expected[k])) << "view " << k;
    EXPECT_EQ(elements(state), elements(eager)) << "call " << i;
  }
}

// The bytes of the copies in this process that no program requested.
uint64_t bytes_copied() {
  uint64_t sum = 0;
  for (const ExecutionEntry& entry : execution_report()) sum += entry.op == kDenseCopy ? entry.bytes_copied : 0;
  return sum;
}

// A cache of 16 MB: a run writes the keys of its token, and neither copies the cache nor allocates another one.
TEST(Capture, ACacheIsWrittenWhereItLies) {
  Tensor cache = random_tensor({1, 4, 16384, 64}, 1), eager = clone(cache);
  const auto function = [](Tensor& keys, const Tensor& key, const Tensor& at) {
    Tensor place = slice(keys, 2, 100, 101);
    copy_(place, key * 0.5);
    copy_(keys, index_copy(keys, 2, at, key));
    return sum(slice(keys, 2, 90, 120));
  };
  auto step = compile([&](const Tensor& key, const Tensor& at) { return function(cache, key, at); }, {.exact = true});
  const auto token = [](int64_t i) -> TensorList {
    return {random_tensor({1, 4, 1, 64}, static_cast<uint32_t>(i) + 2),
            Tensor::from<int64_t>(std::vector<int64_t>{95 + i}, {1})};
  };
  const uint64_t before = bytes_copied(), peak = Device::current().memory_stats().peak;
  std::vector<std::vector<float>> results;
  for (int64_t i = 0; i < 5; ++i) results.push_back(elements(step(token(i)[0], token(i)[1])));
  EXPECT_EQ(step.stats().recordings, 1u);
  EXPECT_EQ(bytes_copied(), before);
  EXPECT_LT(Device::current().memory_stats().peak - peak, uint64_t{1} << 20);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(results[static_cast<size_t>(i)], elements(function(eager, token(i)[0], token(i)[1]))) << "call " << i;
  }
  EXPECT_EQ(elements(cache), elements(eager));
}

// Random reads and writes through views that overlap, some made outside and some inside.
class RandomWrites {
 public:
  RandomWrites(uint32_t seed, const TensorList& views) : seed_(seed), views_(views) {}

  TensorList operator()(const TensorList& in) {
    random_.seed(seed_);
    TensorList results, seen = views_;
    for (int i = 0; i < 8; ++i) step(in[0], &seen, &results);
    return results;
  }

 private:
  Tensor& pick(TensorList& from) { return from[random_() % from.size()]; }

  void step(const Tensor& x, TensorList* seen, TensorList* results) {
    Tensor view = pick(*seen);
    switch (random_() % 6) {
      case 0: return static_cast<void>(add_(view, x));
      case 1: return static_cast<void>(copy_(view, x));
      case 2: return static_cast<void>(fill_(view, Scalar(0.25)));
      case 3: return results->push_back(neg(view));
      case 4: return results->push_back(clone(view));
      default: {
        const auto axis = static_cast<int64_t>(random_() % static_cast<uint32_t>(view.rank()));
        const int64_t begin = view.dims()[axis] > 2 ? 1 : 0;
        seen->push_back(slice(view, axis, begin, view.dims()[axis]));
      }
    }
  }

  uint32_t seed_;
  TensorList views_;
  std::mt19937 random_;
};

TEST(Capture, RandomWritesThroughOverlappingViewsAreThoseOfEager) {
  const auto views_of = [](const Tensor& whole) -> TensorList {
    const Tensor matrix = reshape(whole, {4, 6});
    return {whole,
            matrix,
            transpose(matrix, 0, 1),
            slice(matrix, 0, 1, 3, 1),
            slice(matrix, 1, 0, 6, 2),
            select(matrix, 1, 5)};
  };
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Tensor state = random_tensor({24}, seed), eager = clone(state);
    RandomWrites function(seed, views_of(state)), expected(seed, views_of(eager));
    auto step = compile([&](const TensorList& in) { return function(in); }, {.exact = true});
    for (uint32_t i = 0; i < 3; ++i) {
      const TensorList x{random_tensor({}, i + 5)};
      const TensorList out = step(x), wanted = expected(x);
      for (size_t k = 0; k < out.size(); ++k) {
        ASSERT_EQ(elements(out[k]), elements(wanted[k])) << "seed " << seed << ", call " << i << ", result " << k;
      }
      ASSERT_EQ(elements(state), elements(eager)) << "seed " << seed << ", call " << i;
    }
  }
}

TEST(Capture, ExpandedViewsAreReadAsTheyAre) {
  const Tensor row = random_tensor({3}, 1), seen = expand(unsqueeze(row, 0), {4, 3});
  auto step = compile([&](const Tensor& x) { return x * seen; });
  const Tensor x = random_tensor({4, 3}, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(step(x)), elements(x * seen));
}

TEST(Capture, TwoCapturesMaySwap) {
  Tensor a = random_tensor({3}, 1), b = random_tensor({3}, 2);
  const std::vector<float> first = elements(a), second = elements(b);
  auto step = compile([&](const Tensor& x) {
    const Tensor kept = clone(a);
    copy_(a, b);
    copy_(b, kept);
    return x + kept;
  });
  const Tensor x = random_tensor({3}, 3);
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> expected = elements(x + a);
    EXPECT_EQ(elements(step(x)), expected);
    EXPECT_EQ(elements(a), i % 2 == 0 ? second : first);
    EXPECT_EQ(elements(b), i % 2 == 0 ? first : second);
  }
}

TEST(Capture, AValueBeforeTheWriteStaysAResult) {
  Tensor w = random_tensor({3}, 1);
  auto step = compile([&](const Tensor& x) {
    const Tensor before = clone(w);
    add_(w, x);
    return before;
  });
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> expected = elements(w);
    EXPECT_EQ(elements(step(x)), expected);
  }
}

TEST(Capture, ArgumentsAreWrittenToo) {
  auto step = compile([](Tensor x, const Tensor& y) {
    add_(x, y);
    return x * 2.0;
  });
  for (uint32_t i = 0; i < 3; ++i) {
    const Tensor x = random_tensor({3}, i), y = random_tensor({3}, i + 9);
    const std::vector<float> sum = elements(x + y);
    const Tensor twice = step(x, y);
    EXPECT_EQ(elements(x), sum);
    EXPECT_EQ(elements(twice), elements(x * 2.0));
  }
}

// The same function, with arguments that share memory with each other, with a capture, or not at all.
TEST(Capture, SharedMemoryIsAGuard) {
  const Tensor w = random_tensor({4}, 1);
  const auto function = [&](Tensor x, const Tensor& y) {
    add_(x, 1.0);
    return x * y + w;
  };
  auto step = compile([&](const Tensor& x, const Tensor& y) { return function(x, y); });
  const auto expect_same = [&](const std::function<std::pair<Tensor, Tensor>()>& make) {
    for (int i = 0; i < 3; ++i) {
      const std::vector<float> kept = elements(w);
      auto [x, y] = make();
      const std::vector<float> expected = elements(function(x, y)), left = elements(w);
      Tensor(w).copy_from(kept.data());
      std::tie(x, y) = make();
      EXPECT_EQ(elements(step(x, y)), expected);
      EXPECT_EQ(elements(w), left);
    }
  };
  expect_same([] { return std::pair(random_tensor({4}, 5), random_tensor({4}, 6)); });
  EXPECT_EQ(step.stats().recordings, 1u);
  expect_same([] {
    const Tensor x = random_tensor({4}, 5);
    return std::pair(x, x);
  });
  EXPECT_EQ(step.stats().recordings, 2u);
  expect_same([] {
    const Tensor x = random_tensor({6}, 5);
    return std::pair(slice(x, 0, 0, 4, 1), slice(x, 0, 2, 6, 1));
  });
  EXPECT_EQ(step.stats().recordings, 3u);
  expect_same([&] { return std::pair(w, random_tensor({4}, 6)); });
  EXPECT_EQ(step.stats().recordings, 4u);
  expect_same([&] { return std::pair(random_tensor({4}, 6), w); });
}

TEST(Capture, FrozenIsAConstantThatMayNotBeWritten) {
  Tensor w = random_tensor({3}, 1);
  auto step = compile([&](const Tensor& x) { return x * exp(w); }, {.name = "scale", .frozen = {w}});
  const Tensor x = random_tensor({3}, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(step(x)), elements(x * exp(w)));
  auto writes = compile([&](const Tensor& x) { return add_(w, x); }, {.name = "writes", .frozen = {w}});
  EXPECT_TRUE(contains(error_of([&] { writes(x); }), "writes: add writes a tensor of shape [3] that was frozen"));
  add_(w, 1.0);
  EXPECT_TRUE(
      contains(error_of([&] { step(x); }), "scale: add has written into a tensor of shape [3] that was frozen"));
}

// No slice of a row-major tensor has the strides 3 and 2.
TEST(Capture, StridesThatNoViewGivesAreReadAndNotWritten) {
  std::vector<float> data{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const Tensor whole = Tensor::borrow(data.data(), {9}, {}, DType::f32, [] {});
  TensorList odd;  // over the storage of `whole`
  {
    const Tensor seen = Tensor::borrow(data.data(), {3, 2}, {3, 2}, DType::f32, [] {});
    odd.push_back(seen);
  }
  auto reads = compile([&](const Tensor& x) { return odd[0] * x; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(elements(reads(full({}, 2.0, DType::f32))), (std::vector<float>{0, 4, 6, 10, 12, 16}));
    data[8] = 8;
  }
  auto writes = compile([&](const Tensor& x) { return Tensor(add_(odd[0], x)); });
  for (int i = 0; i < 2; ++i) writes(full({}, 1.0, DType::f32));
  EXPECT_EQ(data, (std::vector<float>{2, 1, 4, 5, 4, 7, 8, 7, 10}));
}

// Each run draws the numbers that the eager run would draw, and leaves the generator in the same state.
TEST(Capture, RandomNumbersAreDrawnByEachRun) {
  const auto function = [](const Tensor& x) -> TensorList {
    const Tensor noise = randn({5}, DType::f64, x.device());
    return {dropout(x, 0.4, true), rand({3, 3}, DType::f32, x.device()), cast(noise, DType::f32),
            bernoulli(x * 0.0 + 0.5)};
  };
  auto step = compile(function, {.exact = true});
  const Tensor x = random_tensor({7}, 1);
  const auto run_five = [&](const std::function<TensorList(const Tensor&)>& call) {
    manual_seed(11);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 5; ++i) {
      for (const Tensor& result : call(x)) all.push_back(elements(result));
    }
    all.push_back({static_cast<float>(default_generator().state().offset)});
    return all;
  };
  const auto found = run_five([&](const Tensor& in) { return step(in); });
  EXPECT_EQ(found, run_five(function));
  EXPECT_NE(found[1], found[5]) << "another run, other numbers";
}

TEST(Capture, RandomNumbersOfAFunctionInPartsAreTheSame) {
  const auto function = [](const Tensor& x) -> TensorList {
    const Tensor before = rand({6}, DType::f32, x.device());
    const double first = before.to_host<float>()[0];
    return {before, x * first, dropout(x, 0.5, true), randn({3}, DType::f32, x.device())};
  };
  auto step = compile(function, {.exact = true, .whole = false});
  const Tensor x = random_tensor({7}, 1);
  const auto run_five = [&](const std::function<TensorList(const Tensor&)>& call) {
    manual_seed(12);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 5; ++i) {
      for (const Tensor& result : call(x)) all.push_back(elements(result));
    }
    return all;
  };
  EXPECT_EQ(run_five([&](const Tensor& in) { return step(in); }), run_five(function));
}

// Sums are added in memory order, so a write through a view does not change that order.
TEST(Capture, WritesThroughTransposedViewsKeepTheOrderOfElements) {
  const auto function = [](const Tensor& x) {
    Tensor base = tanh(x), other = tanh(permute(x, {1, 0}));
    Tensor row = select(permute(base, {1, 0}), 0, 2), whole = permute(base, {1, 0});
    mul_(row, 0.75);
    add_(whole, 0.125);
    copy_(other, x);
    return stack({mean(base), mean(tanh(contiguous(whole))), mean(other)});
  };
  auto compiled = compile(function, {.exact = true});
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Tensor x = random_tensor({23, 23}, seed);
    const std::vector<float> found = elements(compiled(x)), expected = elements(function(x));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], expected[i]) << "sum " << i;
  }
}

}  // namespace
}  // namespace tenon
