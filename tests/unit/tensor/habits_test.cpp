// What hands that know PyTorch and NumPy expect of the C++ API: methods, operators, indexing, lists, files of numbers.
#include <gtest/gtest.h>

#include "core/ops/call.h"
#include "core/ops/conversions.h"
#include "core/ops/index.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "tests/unit/tensor/expect_error.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon {
namespace {

void expect_error(Code code, const std::string& part, const std::function<void()>& call) {
  testing::expect_error(call, code, {part});
}

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;

Tensor counted(const Dims& dims) {
  Floats values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 1;
  return Tensor::from(values, dims);
}

Floats floats(const Tensor& x) { return cast(x, DType::f32).to_host<float>(); }

TEST(Lists, BecomeTensors) {
  const Tensor x = Tensor::from({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.dtype(), DType::i64);
  EXPECT_EQ(x.dims(), (Dims{2, 3}));
  EXPECT_EQ(x.to_host<int64_t>(), (Longs{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor::from({1.5, 2}).dtype(), DType::f32);
  EXPECT_EQ(floats(Tensor::from({1.5, 2})), (Floats{1.5, 2}));
  EXPECT_EQ(Tensor::from({true, false}).to_host<uint8_t>(), (Bytes{1, 0}));
  EXPECT_EQ(Tensor::from(7).rank(), 0);
  EXPECT_EQ(Tensor::from({1, -2}, DType::bf16).to_host<bfloat16>()[1], -2.0f);
  EXPECT_EQ(Tensor::from({{1.0, 2.0}}, DType::f64).to_host<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(Tensor::from(std::vector<int32_t>{4, 5}).dtype(), DType::i32);
  expect_error(Code::invalid_argument, "a list of shape [1] stands beside one of shape [2]", [] {
    (void)Tensor::from({{1, 2}, {3}});
  });
  expect_error(Code::invalid_argument, "whole bytes", [] { (void)Tensor::from({1, 2}, DType::i4); });
}

TEST(Shapes, MayBeListsOfAnyIntegers) {
  const std::vector<int> shape{3, 2};
  const std::vector<size_t> sizes{2, 3};
  EXPECT_EQ(reshape(counted({6}), shape).dims(), (Dims{3, 2}));
  EXPECT_EQ(counted({6}).reshape(sizes).dims(), (Dims{2, 3}));
  EXPECT_EQ(zeros(shape).dims(), (Dims{3, 2}));
  EXPECT_EQ(Tensor::empty(shape, DType::f32).dims(), (Dims{3, 2}));
  EXPECT_EQ(sum(counted({2, 3}), std::vector<int>{0, 1}).item<float>(), 21);
}

TEST(Halves, HoldWhatTheirDTypesHold) {
  const Tensor x = Tensor::from(std::vector<float16>{1.5f, -2.25f, 65504.0f}, Dims{3});
  EXPECT_EQ(x.dtype(), DType::f16);
  EXPECT_EQ(floats(x), (Floats{1.5, -2.25, 65504}));
  EXPECT_EQ(static_cast<float>(float16(1.0f / 3)), 0.333251953125f);
  EXPECT_EQ(static_cast<float>(bfloat16(1.0f / 3)), 0.333984375f);
  EXPECT_EQ(static_cast<float>(x.to_host<float16>()[2]), 65504);
}

TEST(Methods, AreTheFunctionsOfTheirNames) {
  Tensor x = counted({2, 3});
  EXPECT_EQ(x.sum().item<double>(), 21);
  EXPECT_EQ(floats(x.sum(0)), (Floats{5, 7, 9}));
  EXPECT_EQ(x.reshape({3, 2}).t().size(0), 2);
  EXPECT_EQ(x.size(), (Dims{2, 3}));
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.mean(1, true).dims(), (Dims{2, 1}));
  EXPECT_EQ(floats(x.add(1).mul(x)), (Floats{2, 6, 12, 20, 30, 42}));
  EXPECT_EQ(std::get<1>(x.max(1)).to_host<int64_t>(), (Longs{2, 2}));
  EXPECT_EQ(x.chunk(3, 1).size(), 3u);
  EXPECT_EQ(x.to(DType::i32).dtype(), DType::i32);
  EXPECT_EQ(&x.add_(1), &x);
  EXPECT_EQ(floats(x), (Floats{2, 3, 4, 5, 6, 7}));
  x.select(0, 1).zero_();
  x.narrow(1, 0, 1).add_(10);
  EXPECT_EQ(floats(x), (Floats{12, 3, 4, 10, 0, 0}));
  expect_error(Code::invalid_argument, "undefined", [] { (void)Tensor().exp(); });
}

TEST(Elements, AreReadAsTheirTypes) {
  const Tensor x = counted({2, 2});
  EXPECT_EQ(x.data_ptr<float>()[3], 4);
  EXPECT_EQ(x.data_ptr<const float>()[0], 1);
  expect_error(Code::invalid_argument, "data_ptr: the tensor holds f32, not i64.",
               [&] { (void)x.data_ptr<int64_t>(); });
  EXPECT_EQ(x[1][0].item<int>(), 3);
  EXPECT_TRUE(gt(x, 0).all().item<bool>());
}

TEST(Scalars, Compute) {
  const Scalar two = 2, half = 0.5;
  EXPECT_EQ((two * 3 + 1).to_int(), 7);
  EXPECT_EQ((two + half).to_double(), 2.5);
  EXPECT_EQ((1 - half / two).to<float>(), 0.75f);
  EXPECT_EQ((-two).dtype(), DType::i64);
  EXPECT_EQ((two / 4).to_double(), 0.5);
  EXPECT_EQ(Scalar(300).to<uint8_t>(), 44);
  EXPECT_TRUE(Scalar(0.25).to<bool>());
}

TEST(OperatorHabits, CompareAndCombine) {
  const Tensor x = Tensor::from({1, 2, 3, 4}), y = Tensor::from({4, 2, 1, 4});
  EXPECT_EQ((x == y).to_host<uint8_t>(), (Bytes{0, 1, 0, 1}));
  EXPECT_EQ((x != 2).to_host<uint8_t>(), (Bytes{1, 0, 1, 1}));
  EXPECT_EQ((2 < x).to_host<uint8_t>(), (Bytes{0, 0, 1, 1}));
  EXPECT_EQ((x <= y).to_host<uint8_t>(), (Bytes{1, 1, 0, 1}));
  EXPECT_EQ((x > 3).to_host<uint8_t>(), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ((x >= y).to_host<uint8_t>(), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ((x % 3).to_host<int64_t>(), (Longs{1, 2, 0, 1}));
  EXPECT_EQ((x & 6).to_host<int64_t>(), (Longs{0, 2, 2, 4}));
  EXPECT_EQ((x | 8).to_host<int64_t>(), (Longs{9, 10, 11, 12}));
  EXPECT_EQ((x ^ y).to_host<int64_t>(), (Longs{5, 0, 2, 0}));
  EXPECT_EQ((~x).to_host<int64_t>(), (Longs{-2, -3, -4, -5}));
  EXPECT_EQ((!(x > 2)).to_host<uint8_t>(), (Bytes{1, 1, 0, 0}));
  EXPECT_EQ(((x > 1) & (y > 1)).to_host<uint8_t>(), (Bytes{0, 1, 0, 1}));
  Tensor z = x.clone();
  z %= 3;
  z |= 4;
  EXPECT_EQ(z.to_host<int64_t>(), (Longs{5, 6, 4, 5}));
}

TEST(Index, TakesNumbersSlicesAndNewAxes) {
  const Tensor x = counted({3, 4, 5});
  EXPECT_EQ(floats(x.index({1, Slice(1, 3), -1})), (Floats{30, 35}));
  EXPECT_EQ(x.index({Ellipsis, 0}).dims(), (Dims{3, 4}));
  EXPECT_EQ(x.index({None, Slice(), Ellipsis, None}).dims(), (Dims{1, 3, 4, 5, 1}));
  EXPECT_EQ(floats(x.index({0, 0, Slice(None, None, 2)})), (Floats{1, 3, 5}));
  EXPECT_EQ(floats(x.index({0, 0, Slice(None, None, -2)})), (Floats{5, 3, 1}));
  EXPECT_EQ(x[2].dims(), (Dims{4, 5}));
  expect_error(Code::invalid_argument, "4 axes are indexed", [&] { (void)x.index({0, 0, 0, 0}); });
  expect_error(Code::invalid_argument, "2 ellipses", [&] { (void)x.index({Ellipsis, Ellipsis}); });
}

TEST(Index, TakesMasksAndPositions) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(x.index({x > 2})), (Floats{3, 4, 5, 6}));
  EXPECT_EQ(floats(x.index({Slice(), Tensor::from({true, false, true})})), (Floats{1, 3, 4, 6}));
  EXPECT_EQ(floats(x.index({Tensor::from({1, 0, -1}), Tensor::from({2, 0, 1})})), (Floats{6, 1, 5}));
  EXPECT_EQ(x.index({Tensor::from({{1}, {0}})}).dims(), (Dims{2, 1, 3}));
  EXPECT_EQ(floats(x.index({Tensor::from({{1}, {0}}), Tensor::from({0, 2})})), (Floats{4, 6, 1, 3}));
  const Tensor y = counted({2, 3, 4, 5});
  const Tensor rows = Tensor::from({0, 1, 1}), columns = Tensor::from({3, 0, 2});
  // Positions with an axis between them stand in front, others where the first of them stood.
  EXPECT_EQ(y.index({rows, Slice(), columns}).dims(), (Dims{3, 3, 5}));
  EXPECT_EQ(y.index({Slice(), rows, columns}).dims(), (Dims{2, 3, 5}));
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t row = rows[i].item<int64_t>(), column = columns[i].item<int64_t>();
    EXPECT_EQ(floats(y.index({rows, Slice(), columns})[i]), floats(y.index({row, Slice(), column})));
    EXPECT_EQ(floats(y.index({Slice(), rows, columns}).index({Slice(), i})), floats(y.index({Slice(), row, column})));
  }
  expect_error(Code::invalid_argument, "does not fit", [&] { (void)x.index({Tensor::from({true, false, true})}); });
  expect_error(Code::invalid_argument, "neither a mask nor positions", [&] { (void)x.index({Tensor::from({0.5})}); });
  EXPECT_THROW(x.index({Tensor::from({0, 1}), Tensor::from({3, 0})}).wait(), Error);
  EXPECT_THROW(x.index({Tensor::from({0, -3}), Tensor::from({2, 0})}).wait(), Error);
}

TEST(Index, IsWrittenThrough) {
  Tensor x = zeros({2, 3});
  x[0] = 1;
  x[1] = Tensor::from({4.0, 5.0, 6.0});
  x.index({Slice(), Slice(1, 2)}) += 10;
  narrow(x, 1, 2, 1) *= 2;
  EXPECT_EQ(floats(x), (Floats{1, 11, 2, 4, 15, 12}));
  copy_(select(x, 0, 0), Tensor::from({7.0, 8.0, 9.0}));
  x.index_put_({x > 11}, 0);
  EXPECT_EQ(floats(x), (Floats{7, 8, 9, 4, 0, 0}));
  x.index_put_({Tensor::from({0, 1}), Tensor::from({2, 1})}, Tensor::from({-1.0, -2.0}));
  EXPECT_EQ(floats(x), (Floats{7, 8, -1, 4, -2, 0}));
  x.index_put_({Slice(), Tensor::from({true, false, true})}, Tensor::from({1.0, 2.0}));
  EXPECT_EQ(floats(x), (Floats{1, 8, 2, 1, -2, 2}));
  x.index_put_({Ellipsis, 1}, 3);
  EXPECT_EQ(floats(x), (Floats{1, 3, 2, 1, 3, 2}));
  Tensor y = counted({2, 3, 2});
  y.index_put_({Tensor::from({0, 1}), Slice(), Tensor::from({1, 0})}, counted({2, 3}) * -1);
  EXPECT_EQ(floats(y), (Floats{1, -1, 3, -2, 5, -3, -4, 8, -5, 10, -6, 12}));
}

TEST(Index, AssignmentToATensorWithANameReplacesIt) {
  Tensor x = counted({2});
  const Tensor before = x;
  x = counted({3});
  EXPECT_EQ(before.dims(), (Dims{2}));
}

TEST(Iteration, GoesOverTheFirstAxis) {
  float total = 0;
  int64_t rows = 0;
  for (const Tensor& row : counted({3, 2})) {
    total += row.sum().item<float>();
    ++rows;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(total, 21);
  expect_error(Code::invalid_argument, "", [] { (void)Tensor::from(1).begin(); });
}

TEST(Clamp, TakesANumberAndATensor) {
  const Tensor x = Tensor::from({-2.0, 0.5, 3.0}), bound = Tensor::from({1.0, 0.25, 2.0});
  EXPECT_EQ(floats(clamp(x, 0, bound)), (Floats{0, 0.25, 2}));
  EXPECT_EQ(floats(x.clamp(bound, 2.5)), (Floats{1, 0.5, 2.5}));
}

TEST(Threads, AreSetBeforeADeviceOpens) {
  (void)Device::host();
  expect_error(Code::busy, "a device is open", [] { set_num_threads(2); });
  expect_error(Code::invalid_argument, "0 threads are none", [] { set_num_threads(0); });
  EXPECT_GE(get_num_threads(), 1);
}

class Numbers : public testing::InFlight {};

TEST_F(Numbers, OnTheHostComputeWithTensorsOfADevice) {
  const Tensor x = Tensor::from({1.0, 2.0}).to(device());
  const Tensor half = Tensor::from(0.5).to(Device::host());
  EXPECT_EQ((x * half).device(), device());
  EXPECT_EQ(floats(x * half), (Floats{0.5, 1}));
  EXPECT_EQ(floats(half - x), (Floats{-0.5, -1.5}));
  EXPECT_EQ(floats(where(gt(x, 1), x, half)), (Floats{0.5, 2}));
  Tensor y = x.clone();
  y += half;
  EXPECT_EQ(floats(y), (Floats{1.5, 2.5}));
  const Tensor learned = Tensor::from(0.5).requires_grad_();
  sum(x * learned).backward();
  EXPECT_EQ(learned.grad().item<float>(), 3);
  expect_error(Code::invalid_argument, "same device", [&] { (void)(x + Tensor::from({1.0, 2.0}).to(Device::host())); });
}

// Each row of the table of conversions, by the call that it gives as an example.
TEST(Conversions, GiveWhatTheArgumentsThemselvesGive) {
  const Tensor x = counted({2, 3}) - 3;
  const auto same = [&](std::string_view name, std::initializer_list<Value> args, const Tensor& expected) {
    const Tensor found = call(name, args)[0];
    EXPECT_EQ(found.dtype(), expected.dtype()) << name;
    EXPECT_EQ(found.dims(), expected.dims()) << name;
    EXPECT_EQ(floats(found), floats(expected)) << name;
  };
  same("select", {x, 0, Tensor::from(1)}, select(x, 0, 1));
  same("leaky_relu", {x, Tensor::from(0.5)}, leaky_relu(x, 0.5));
  same("sum", {x, 0, Tensor::from(true)}, sum(x, 0, true));
  same("reshape", {x, Tensor::from({3, 2})}, reshape(x, {3, 2}));
  same("cast", {x, "float64"}, cast(x, DType::f64));
  same("to", {x, "cpu"}, x);
  same("index_select", {x, 1, Value::Ints{2, 0}}, index_select(x, 1, Tensor::from({2, 0})));
  EXPECT_EQ(conversions().size(), 7u) << "a row without a line here";
  for (const Conversion& row : conversions()) {
    EXPECT_FALSE(row.example.empty());
    EXPECT_FALSE(row.cpp.empty());
  }
}

TEST(Conversions, TakeSeveralNumbersAsAList) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(call("permute", {x, 1, 0})[0].dims(), (Dims{3, 2}));
  EXPECT_EQ(call("reshape", {x, 3, 2})[0].dims(), (Dims{3, 2}));
  EXPECT_EQ(call("reshape", {x, 6})[0].dims(), (Dims{6}));
  EXPECT_EQ(call("zeros", {4, 5})[0].dims(), (Dims{4, 5}));
  EXPECT_EQ(floats(call("flip", {x, 0, 1})[0]), (Floats{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(call("zeros", {2, 2}, {{"dtype", "i32"}})[0].dtype(), DType::i32);
  EXPECT_THROW((void)call("permute", {x, 1, 0.5}), Error);
}

TEST(Conversions, TakeNoneForADTypeThatHasADefault) {
  EXPECT_EQ(call("zeros", {Value::Ints{2}}, {{"dtype", Value()}, {"device", Value()}})[0].dtype(), DType::f32);
  EXPECT_EQ(call("one_hot", {Tensor::from({0, 1}), 2}, {{"dtype", Value()}})[0].dtype(), DType::i64);
}

TEST(Conversions, RefuseWhatHasNoMeaning) {
  const Tensor x = counted({2, 3});
  expect_error(Code::invalid_argument, "argument 'index' must be int, not Tensor", [&] {
    (void)call("select", {x, 0, Tensor::from(0.5)});
  });
  expect_error(Code::invalid_argument, "argument 'index' must be int, not Tensor", [&] {
    (void)call("select", {x, 0, Tensor::from({1})});
  });
  expect_error(Code::invalid_argument, "argument 'dtype' must be dtype, not str", [&] {
    (void)call("cast", {x, "float12"});
  });
  expect_error(Code::invalid_argument, "argument 'dim' must be int, not str", [&] {
    (void)call("select", {x, "0", 0});
  });
}

}  // namespace
}  // namespace tenon
