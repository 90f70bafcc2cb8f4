// Code as users of the C++ API write it. Both g++ and clang++ compile it.
#include "core/ops/operators.h"
#include "core/ops/ops.h"

#include <type_traits>

#include "tests/unit/tensor/expect_error.h"

namespace tenon::testing {
namespace {

static_assert(std::is_same_v<decltype(add_(std::declval<Tensor&>(), 1)), Tensor&>, "a name is given back as it is");
static_assert(std::is_same_v<decltype(add_(std::declval<Tensor>(), 1)), Tensor>,
              "a temporary as a handle that lives on");
static_assert(std::is_same_v<decltype(std::declval<Tensor>() += 1), Tensor>);
template <class T>
concept Writable = requires(T&& x) {
  add_(std::forward<T>(x), 1);
};
static_assert(Writable<Tensor&> && Writable<Tensor> && !Writable<const Tensor&>);

Tensor tensor(const std::vector<float>& values, const Dims& dims) {
  return Tensor::from<float>(values, dims, Device("cpu"));
}

TEST(Face, WritesThroughTemporaryViews) {
  Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor row = tensor({7, 8, 9}, {3});
  copy_(select(x, 0, 1), row);
  EXPECT_EQ(x.to_host<float>(), (std::vector<float>{1, 2, 3, 7, 8, 9}));
  narrow(x, 0, 0, 1) += 1;
  narrow(x, 1, 2, 1) -= tensor({1, 2}, {2, 1});
  EXPECT_EQ(x.to_host<float>(), (std::vector<float>{2, 3, 3, 7, 8, 7}));
  (select(x, 0, 0) *= 2) /= row;
  relu_(neg_(select(x, 0, 1)));
  EXPECT_EQ(x.to_host<float>()[5], 0);
  add_out(select(x, 0, 0), row, row);
  fill_(select(x, 1, 0), 5);
  zero_(select(x, 1, 2));
  EXPECT_EQ(x.to_host<float>(), (std::vector<float>{5, 16, 0, 5, 0, 0}));
}

TEST(Face, GivesBackWhatItWrote) {
  Tensor x = tensor({1, 2}, {2});
  EXPECT_EQ(&add_(x, 1), &x);
  EXPECT_EQ(&(x += 1), &x);
  const Tensor written = add_(narrow(x, 0, 1, 1), 10);
  EXPECT_EQ(written.to_host<float>(), (std::vector<float>{14}));
  EXPECT_EQ(x.to_host<float>(), (std::vector<float>{3, 14}));
}

TEST(Face, TakesSizesOfAnyIntegerType) {
  const size_t rows = 2;
  const int columns = 3;
  const int64_t depth = 1;
  const uint8_t one = 1;
  EXPECT_EQ(zeros({rows, columns, depth}).dims(), (Dims{2, 3, 1}));
  EXPECT_EQ(zeros({rows, rows}).dims(), (Dims{rows, rows}));
  EXPECT_EQ(zeros({one, columns}).dims(), (Dims{one, columns}));
  EXPECT_EQ(zeros(rows).dims(), Dims{rows});
  EXPECT_EQ(sum(zeros({rows, columns}), {rows - 2, size_t{1}}).rank(), 0);
  EXPECT_EQ(Tensor::empty({rows, columns}, DType::f32).elements(), 6);
  EXPECT_EQ(reshape(zeros({6}), {rows, -1}).dims(), (Dims{2, 3}));
  const std::vector<float> values(6, 1.0f);
  EXPECT_EQ(Tensor::from<float>(values, {values.size() / 2, 2}).rank(), 2);
}

TEST(Face, RefusesUndefinedTensorsByTheNameOfWhatWasCalled) {
  const Tensor none;
  std::vector<char> bytes(8);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"dtype", [&] { (void)none.dtype(); }},
      {"dims", [&] { (void)none.dims(); }},
      {"strides", [&] { (void)none.strides(); }},
      {"rank", [&] { (void)none.rank(); }},
      {"dim", [&] { (void)none.dim(0); }},
      {"elements", [&] { (void)none.elements(); }},
      {"bytes", [&] { (void)none.bytes(); }},
      {"contiguous", [&] { (void)none.contiguous(); }},
      {"device", [&] { (void)none.device(); }},
      {"copy_to_host", [&] { none.copy_to_host(bytes.data()); }},
      {"copy_from", [&] { Tensor(none).copy_from(bytes.data()); }},
      {"to_host", [&] { (void)none.to_host<float>(); }},
      {"wait", [&] { none.wait(); }},
      {"item", [&] { (void)none.item(); }},
      {"data", [&] { (void)none.data(); }},
      {"to", [&] { (void)none.to(Device::host()); }},
  };
  for (const auto& [name, call] : calls) {
    const Status status = error_of(call);
    EXPECT_EQ(status.code(), Code::invalid_argument) << name;
    EXPECT_EQ(status.message(),
              std::string(name) + ": the tensor is undefined: it was made without a value, or moved from.");
  }
  EXPECT_FALSE(none.defined());
  Tensor moved = tensor({1}, {1});
  const Tensor taken = std::move(moved);
  EXPECT_EQ(error_of([&] { (void)moved.rank(); }).code(), Code::invalid_argument);
}

TEST(Face, TileNeverSharesMemory) {
  for (const Dims& repeats : {Dims{1, 1}, Dims{1, 1, 1}, Dims{3, 1, 1}, Dims{1}, Dims{1, 4}, Dims{1, 0}}) {
    const Tensor x = tensor({1, 2}, {2, 1});
    Tensor tiled = tile(x, repeats);
    tiled += 5;
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{1, 2})) << to_string(repeats);
    fill_(select(x, 0, 0), 9);
    for (const float value : tiled.to_host<float>()) EXPECT_NE(value, 9) << to_string(repeats);
  }
}

}  // namespace
}  // namespace tenon::testing
