// Global tensors on every rank of a launch: the parts together equal the same ops on the whole tensor, which each rank
// computes itself.
#include "core/global/global.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/autograd/autograd.h"
#include "core/device/deterministic.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/tensor/generator.h"
#include "core/tensor/print.h"
#include "primitives/text/format.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

TEST(Layout, PartsCoverEveryLengthOnce) {
  for (int64_t length = 0; length < 12; ++length) {
    for (int64_t parts = 1; parts < 6; ++parts) {
      int64_t at = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Range part = part_of(length, parts, i);
        EXPECT_EQ(part.begin, at);
        EXPECT_LE(part.length - part_of(length, parts, parts - 1).length, 1);
        at = part.end();
      }
      EXPECT_EQ(at, length);
    }
  }
}

TEST(Layout, TextsGoBothWays) {
  for (const Sbp each : {S0, S2, B, P}) EXPECT_EQ(sbp_from(to_string(each)), each);
  for (const char* wrong : {"", "S", "S(8)", "S(-1)", "S(1", "b"}) {
    EXPECT_NE(error_of([&] { sbp_from(wrong); }).find("is not an SBP"), std::string::npos) << wrong;
  }
}

std::vector<NdSbp> layouts(int32_t axes) {
  std::vector<NdSbp> all{NdSbp()};
  for (int32_t axis = 0; axis < axes; ++axis) {
    std::vector<NdSbp> longer;
    for (const NdSbp& each : all) {
      for (const Sbp sbp : {S0, S1, S2, B, P}) {
        longer.push_back(each);
        longer.back().push_back(sbp);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Between any two layouts of two placements, including uneven and empty parts.
void expect_all_pairs(const Placement& from, const Placement& to, const Dims& dims, DType dtype) {
  const Tensor whole = some(dims, 1, dtype);
  for (const NdSbp& before : layouts(from.grid().rank())) {
    const Tensor source = spread(whole, from, before);
    for (const NdSbp& after : layouts(to.grid().rank())) {
      const Tensor moved = from == to ? to_global(source, after) : to_global(source, to, after);
      const std::string what = fmt::format("{} {} of {} to {} {}", from.to_string(), to_string(before), dims,
                                           to.to_string(), to_string(after));
      ASSERT_EQ(layout_of(moved), (Layout{to, after})) << what;
      if (to.here()) {
        const Box box = box_of(dims, after, to.grid(), to.coordinates(to.position()));
        ASSERT_EQ(to_local(moved).dims(), box.dims) << what;
      }
      const Placement all = Placement::all(devices());
      expect_same(to_global(moved, all, {B}), whole, what);
    }
  }
}

TEST(Boxing, EveryPairOnALine) {
  const Placement all = Placement::all(devices());
  for (const Dims& dims : {Dims{5, 3, 4}, Dims{1, 7, 2}, Dims{0, 3, 2}}) expect_all_pairs(all, all, dims, DType::f32);
  expect_all_pairs(all, all, {4, 5, 3}, DType::i64);
}

TEST(Boxing, EveryPairOnAGrid) {
  if (ranks() != 4) return;  // four ranks make a grid
  const Placement grid(devices(), {2, 2}, {0, 1, 2, 3});
  for (const Dims& dims : {Dims{5, 3, 4}, Dims{1, 2, 7}}) expect_all_pairs(grid, grid, dims, DType::f32);
}

TEST(Boxing, EveryPairOfPlacements) {
  if (ranks() < 2) return;  // one rank has one placement
  std::vector<int32_t> backwards(static_cast<size_t>(ranks()));
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const Placement all = Placement::all(devices()), turned(devices(), backwards), last(devices(), {ranks() - 1}),
                  first(devices(), {0});
  const Placement tall(devices(), {ranks(), 1}, backwards);
  for (const auto& [from, to] : {std::pair(all, turned), std::pair(first, last), std::pair(all, last),
                                 std::pair(first, all), std::pair(turned, tall)}) {
    expect_all_pairs(from, to, {5, 3, 2}, DType::f32);
  }
}

TEST(Boxing, SumsGoInTheOrderOfRanksWhereThatIsWanted) {
  const Placement all = Placement::all(devices());
  std::vector<float> values(1001);
  std::mt19937 generator(static_cast<uint32_t>(rank()));
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(generator);
  const Tensor part = Tensor::from(std::span<const float>(values), {1001}, own_device());
  const Tensor rows = to_local(to_global(to_global(unsqueeze(part, 0), all, {S0}), {B}));
  Tensor expected = clone(select(rows, 0, 0));
  for (int64_t i = 1; i < ranks(); ++i) add_(expected, select(rows, 0, i));
  use_deterministic_algorithms(true);
  const Tensor sum = to_global(to_global(part, all, {P}), {B});
  const Tensor split = to_global(to_global(part, all, {P}), {S0});
  use_deterministic_algorithms(false);
  expect_same(sum, expected, "all-reduce");
  expect_same(split, expected, "reduce-scatter");
}

TEST(Global, PartsMakeTheWhole) {
  const Placement all = Placement::all(devices());
  const Tensor part = some({part_of(7, ranks(), rank()).length, 3}, 10 + static_cast<uint64_t>(rank()));
  const Tensor global = to_global(part, all, {S0});
  EXPECT_TRUE(is_global(global));
  EXPECT_FALSE(is_global(part));
  EXPECT_EQ(global.dims(), (Dims{7, 3}));
  EXPECT_EQ(to_local(global).data(), part.data());
  EXPECT_EQ(tenon::to_string(global),
            fmt::format("f32 [7, 3] {}, a global tensor on {}, S(0)", all.device().spelling(), all.to_string()));
  const Tensor once = to_global(some({3, 2}, 5), all, {B});
  expect_same(to_global(once, {P}), some({3, 2}, 5), "broadcast");
  expect_same(to_global(some({3, 2}, 5), all, {P}), some({3, 2}, 5) * ranks(), "partial");
}

TEST(Global, TheCheapestSignatureIsChosen) {
  const Placement all = Placement::all(devices());
  if (ranks() == 1) return;  // with one rank nothing moves
  const Tensor x = spread(some({6, 8}, 1), all, {S0}), w = spread(some({8, 4}, 2), all, {B});
  EXPECT_EQ(layout_of(matmul(x, w)).sbp, NdSbp{S0});
  EXPECT_EQ(layout_of(matmul(to_global(x, {B}), to_global(w, {S1}))).sbp, NdSbp{S1});
  EXPECT_EQ(layout_of(matmul(to_global(x, {S1}), to_global(w, {S0}))).sbp, NdSbp{P});
  EXPECT_EQ(layout_of(x.sum(0)).sbp, NdSbp{P});
  EXPECT_EQ(layout_of(x.sum(1)).sbp, NdSbp{S0});
  EXPECT_EQ(layout_of(x.t()).sbp, NdSbp{S1});
  EXPECT_EQ(layout_of(relu(to_global(x, {P}))).sbp, NdSbp{S0});
  EXPECT_EQ(layout_of(to_global(x, {P}) + to_global(x, {B})).sbp, NdSbp{P});
}

TEST(Global, FactoriesAreSpread) {
  const Placement all = Placement::all(devices());
  for (const Sbp sbp : {S0, S1, B, P}) {
    const std::string what = to_string(sbp);
    expect_same(ones({5, 3}, all, {sbp}), tenon::ones({5, 3}), what);
    expect_same(full({5, 3}, 7, all, {sbp}, DType::i64), tenon::full({5, 3}, 7, DType::i64), what);
    EXPECT_EQ(layout_of(zeros({5, 3}, all, {sbp})), (Layout{all, {sbp}}));
    manual_seed(11);
    const Tensor spread_out = randn({5, 3}, all, {sbp}), more = rand({4, 4}, all, {sbp});
    manual_seed(11);
    expect_same(spread_out, tenon::randn({5, 3}), what);
    expect_same(more, tenon::rand({4, 4}), what);
  }
}

TEST(Global, MeansWeighUnevenParts) {
  const Tensor whole = some({7, 3}, 3);
  const Tensor x = spread(whole, Placement::all(devices()), {S0});
  EXPECT_NEAR(mean(x).item<double>(), mean(whole).item<double>(), 1e-6);
  const Tensor rows = to_global(mean(whole, {0}, true), Placement::all(devices()), {B});
  EXPECT_LT(max(abs(mean(x, {0}, true) - rows)).item<double>(), 1e-6);
}

TEST(Global, WritesGoThroughViews) {
  for (const Sbp sbp : {S0, S1, B}) {
    Tensor whole = some({6, 4}, 4);
    Tensor x = spread(clone(whole), Placement::all(devices()), {sbp});
    const Tensor before = x[1];
    x[2].fill_(5);
    whole[2].fill_(5);
    x[3][1].fill_(9);
    whole[3][1].fill_(9);
    x.t()[1].slice(0, 2, 5).fill_(-3);
    whole.t()[1].slice(0, 2, 5).fill_(-3);
    x.slice(1, 1, 3).mul_(2);
    whole.slice(1, 1, 3).mul_(2);
    expect_same(x, whole, to_string(sbp));
    expect_same(before, whole[1], to_string(sbp));
    sub_(x, spread(some({6, 4}, 6), Placement::all(devices()), {P}));
    EXPECT_EQ(layout_of(x).sbp, NdSbp{sbp});
    expect_same(x, whole - some({6, 4}, 6), to_string(sbp));
    expect_same(before, (whole - some({6, 4}, 6))[1], to_string(sbp));
  }
}

// Two layers and a loss; each tensor spread as the case says.
TEST(Global, GradientsEqualThoseOfTheWhole) {
  const Placement all = Placement::all(devices());
  const auto loss_of = [](const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& y) {
    return mean(square(matmul(relu(matmul(x, a)), b) - y));
  };
  const auto data = [](int i) {
    const Dims dims[] = {{7, 6}, {6, 5}, {5, 3}, {7, 3}};
    return some(dims[i], static_cast<uint64_t>(20 + i), DType::f64);
  };
  const Tensor whole_a = data(1).requires_grad_(), whole_b = data(2).requires_grad_();
  loss_of(data(0), whole_a, whole_b, data(3)).backward();
  const struct {
    Sbp x, a, b, y;
  } cases[] = {{S0, B, B, S0}, {B, S1, S0, B}, {S1, S0, S1, P}, {P, B, S0, S1}, {S0, S0, S0, S0}};
  for (const auto& each : cases) {
    const Tensor a = spread(data(1), all, {each.a}).detach().requires_grad_();
    const Tensor b = spread(data(2), all, {each.b}).detach().requires_grad_();
    const Tensor loss = loss_of(spread(data(0), all, {each.x}), a, b, spread(data(3), all, {each.y}));
    loss.backward();
    EXPECT_LT(max(abs(a.grad() - spread(whole_a.grad(), all, {B}))).item<double>(), 1e-10);
    EXPECT_LT(max(abs(b.grad() - spread(whole_b.grad(), all, {B}))).item<double>(), 1e-10);
  }
}

TEST(Global, GradientsGoThroughBoxing) {
  const Placement all = Placement::all(devices());
  const Tensor part = some({part_of(5, ranks(), rank()).length, 3}, 30).requires_grad_();
  const Tensor there = to_global(to_global(to_global(part, all, {S0}), {S1}), {B});
  const Tensor weights = some({5, 3}, 31);
  sum(there * to_global(weights, all, {B})).backward();
  const Range own = part_of(5, ranks(), rank());
  expect_same(part.grad(), weights.slice(0, own.begin, own.end()), "from global");
  const Tensor leaf = spread(some({5, 3}, 32), all, {S0}).detach().requires_grad_();
  to_local(leaf).mul(2).sum().backward();
  EXPECT_TRUE(ranks() == 1 || layout_of(leaf.grad()).sbp == NdSbp{S0});
  expect_same(leaf.grad(), tenon::full({5, 3}, 2.0, DType::f32, own_device()), "to local");
}

TEST(Global, MixingIsRefused) {
  const Tensor x = spread(some({4, 2}, 1), Placement::all(devices()), {S0});
  const std::string refused = "a local tensor of shape [4, 2] cannot be used with a tensor on";
  EXPECT_NE(error_of([&] { add(x, some({4, 2}, 2)); }).find("add: " + refused), std::string::npos);
  EXPECT_NE(error_of([&] { huber_loss(x, some({4, 2}, 2)); }).find("huber_loss: " + refused), std::string::npos);
  expect_same(x + Tensor::from(NestedList(3.0f)), some({4, 2}, 1) + 3, "a number");
  EXPECT_TRUE(is_global(tenon::ones_like(x)));
  expect_same(ones_like(x) + x, some({4, 2}, 1) + 1, "made by an op");
}

TEST(Global, BadArgumentsAreNamedOnEveryRank) {
  const Placement all = Placement::all(devices());
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(error_of([&] { Placement(devices(), std::vector<int32_t>{0, 0}); }), "rank 0 occurs twice");
  expect(error_of([&] { Placement(devices(), {ranks()}); }), fmt::format("there is no rank {}", ranks()));
  expect(error_of([&] { Placement(devices(), {2, 2}, {0}); }), "1 ranks do not fill the grid [2, 2]");
  expect(error_of([&] { Placement("nodevice", {0}); }), "nodevice");
  expect(error_of([&] { to_global(some({3}, 1), all, {B, B}); }), "has 2 entries");
  expect(error_of([&] { to_global(some({3}, 1), all, {S1}); }), "no axis 1 to split");
  expect(error_of([&] { to_global(some({3}, 1, DType::boolean), all, {P}); }), "no partial sums");
  expect(error_of([&] { layout_of(some({3}, 1)); }), "is local");
  if (ranks() > 1) {
    expect(error_of([&] { to_global(some({rank() + 1, 2}, 1), all, {S0}); }), "its part of a tensor of shape");
    expect(error_of([&] { to_global(some({3 + rank()}, 1), all, {B}); }), "its part of a tensor of shape [3] as B");
    expect(error_of([&] { to_global(some({3}, 1, rank() == 0 ? DType::f32 : DType::f64), all, {B}); }),
           "and rank 0 f32");
    const Placement first(devices(), {0});
    const Tensor there = spread(some({3}, 1), first, {B});
    expect(error_of([&] { add(there, spread(some({3}, 1), all, {B})); }), "but another is on");
    if (rank() > 0) {
      expect(error_of([&] { there.to_host<float>(); }), "cannot be read on a rank outside");
      EXPECT_FALSE(to_local(there).defined());
    }
  }
}

}  // namespace
}  // namespace tenon::global
