// The C++ API as users of PyTorch and NumPy expect it: methods, operators, indexing, lists, files of numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/ops/call.h"
#include "core/ops/conversions.h"
#include "core/ops/index.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/tensor/generator.h"
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
  expect_error(Code::invalid_argument, "a list of shape [1] is next to one of shape [2]", [] {
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

// Results of PyTorch 1.13 for the same calls.
TEST(Methods, HaveTheNamesOfPyTorch) {
  const Tensor x = Tensor::from({{3.0, 1.0, 2.0}, {6.0, 5.0, 4.0}});
  EXPECT_EQ(floats(x.slice(1, 0, 2)), (Floats{3, 1, 6, 5}));
  EXPECT_EQ(floats(x.slice(0, 1)), (Floats{6, 5, 4}));
  EXPECT_EQ(floats(x.slice(-1, std::nullopt, std::nullopt, 2)), (Floats{3, 2, 6, 4}));
  x.clone().slice(1, 1, 2).fill_(0);
  EXPECT_EQ(floats(x.where(x > 2, 0)), (Floats{3, 0, 0, 6, 5, 4}));
  EXPECT_EQ(floats(x.where(x > 2, -x)), (Floats{3, -1, -2, 6, 5, 4}));
  EXPECT_EQ(floats(x.index_put({Tensor::from({0}), Tensor::from({2})}, Tensor::from({9.0}))),
            (Floats{3, 1, 9, 6, 5, 4}));
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.sizes(), (Dims{2, 3}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.t().is_contiguous());
  EXPECT_EQ(ones({16}).stft(4, 2, 4, ones({4})).sizes(), (Dims{3, 9, 2}));
  EXPECT_EQ(ones({16}).stft(4, 2, 4, ones({4})).istft(4, 2, 4, ones({4})).sizes(), (Dims{16}));
  EXPECT_EQ(x.to("cpu").device(), Device("cpu"));
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

TEST(Elements, AreConditionsWhereThereIsOne) {
  const Tensor x = counted({2, 2});
  EXPECT_TRUE(allclose(x, x + 1e-9));
  EXPECT_FALSE(equal(x, x + 1));
  EXPECT_TRUE(!equal(x, x + 1) && equal(x, x));
  EXPECT_EQ(x[0][0] ? 1 : 2, 1);
  EXPECT_FALSE((std::is_convertible_v<Tensor, bool>));
  expect_error(Code::invalid_argument, "has 4 elements, not one", [&] { (void)static_cast<bool>(x); });
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
  // If another axis lies between the index tensors, their axis comes first, otherwise it takes the place of the first
  // of them.
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
  expect_error(Code::busy, "a device is already open", [] { set_num_threads(2); });
  expect_error(Code::invalid_argument, "0 threads were requested", [] { set_num_threads(0); });
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

// A row of the table of conversions: the example call by name, and the C++ code that the row gives for it.
struct ConversionCase {
  std::string_view example;
  std::function<Tensor()> dynamic;
  std::string cpp;
  std::function<Tensor()> typed;
};
#define AS_WRITTEN(...) #__VA_ARGS__, [=] { return __VA_ARGS__; }

// The variables of the examples. In calls with a tensor of rank 0 on the host, the other tensors are on a device.
std::vector<ConversionCase> conversion_cases(const Device& device) {
  const Tensor x = (counted({2, 3}) - 3).to(device), t = Tensor::from({0.5, 1.5, 2.5}).to(device);
  const Tensor i = Tensor::from(1), slope = Tensor::from(0.5), keep = Tensor::from(true), shape = Tensor::from({3, 2});
  const Tensor s = Tensor::from(0.25).to(Device::host());
  const auto one = [](std::string_view name, std::vector<Value> args, std::vector<Keyword> kwargs = {}) {
    return [=] { return call(name, std::span(args), std::span(kwargs)).at(0); };
  };
  return {
      {"select(x, 0, i)", one("select", {x, 0, i}), AS_WRITTEN(select(x, 0, i.item<int64_t>()))},
      {"leaky_relu(x, slope)", one("leaky_relu", {x, slope}), AS_WRITTEN(leaky_relu(x, slope.item<double>()))},
      {"sum(x, 0, keep)", one("sum", {x, 0, keep}), AS_WRITTEN(sum(x, 0, keep.item<bool>()))},
      {"reshape(x, shape)", one("reshape", {x, shape}), AS_WRITTEN(reshape(x, shape.to_host<int64_t>()))},
      {"cast(x, 'float64')", one("cast", {x, "float64"}), AS_WRITTEN(cast(x, DType::f64))},
      {"to(x, 'cpu')", one("to", {x, "cpu"}), AS_WRITTEN(to(x, "cpu"))},
      {"index_select(x, 0, [1, 0])", one("index_select", {x, 0, Value::Ints{1, 0}}),
       AS_WRITTEN(index_select(x, 0, Tensor::from({1, 0})))},
      {"mul(x, [0.5, -1.0, 2.0])", one("mul", {x, Value::Floats{0.5, -1.0, 2.0}}),
       AS_WRITTEN(mul(x, Tensor::from({0.5, -1.0, 2.0})))},
      {"rand([3], generator=g)",
       [] {
         Generator g(7);
         return call("rand", {Value::Ints{3}}, {{"generator", g}}).at(0);
       },
       "rand({3}, DType::f32, {}, &g)",
       [] {
         Generator g(7);
         return rand({3}, DType::f32, {}, &g);
       }},
      {"permute(x, 1, 0)", one("permute", {x, 1, 0}), AS_WRITTEN(permute(x, {1, 0}))},
      {"einsum('ij,ij->i', x, x)", one("einsum", {"ij,ij->i", x, x}), AS_WRITTEN(einsum("ij,ij->i", {x, x}))},
      {"zeros([2], dtype=None, device=None)", one("zeros", {Value::Ints{2}}, {{"dtype", Value()}, {"device", Value()}}),
       AS_WRITTEN(zeros({2}))},
      {"clamp(x, 0, t)", one("clamp", {x, 0, t}), AS_WRITTEN(clamp(x, 0, t))},
      {"add(x, s)", one("add", {x, s}), AS_WRITTEN(add(x, s))},
  };
}

class Conversions : public testing::InFlight {};

// Runs each row by name and as C++ code. Both give the same result; a row whose column `cpp` is not C++ does not
// compile here.
TEST_F(Conversions, OfTheTableGiveInCppWhatTheyGiveByName) {
  std::vector<std::string_view> left;
  for (const Conversion& row : conversions()) left.push_back(row.example);
  for (const ConversionCase& each : conversion_cases(Device::current())) {
    const auto row = std::find_if(conversions().begin(), conversions().end(),
                                  [&](const Conversion& r) { return r.example == each.example; });
    ASSERT_NE(row, conversions().end()) << each.example << " is in no row";
    EXPECT_EQ(std::string(row->cpp), each.cpp);
    const Tensor found = each.dynamic(), expected = each.typed();
    EXPECT_EQ(found.dtype(), expected.dtype()) << each.example;
    EXPECT_EQ(found.dims(), expected.dims()) << each.example;
    EXPECT_EQ(floats(found), floats(expected)) << each.example;
    std::erase(left, each.example);
  }
  EXPECT_TRUE(left.empty()) << left.front() << " has no case here";
}

// Numbers and lists on the host can be used with tensors of any device.
TEST_F(Conversions, ServeTensorsOfADevice) {
  const Tensor x = (counted({2, 3}) - 3).to(device());
  EXPECT_EQ(floats(call("add", {x, Tensor::from(0.25).to(Device::host())})[0]),
            (Floats{-1.75, -0.75, 0.25, 1.25, 2.25, 3.25}));
  EXPECT_EQ(floats(call("select", {x, 0, Tensor::from(1).to(Device::host())})[0]), (Floats{1, 2, 3}));
  const Device before = Device::current();
  Device::set_current(device());
  EXPECT_EQ(floats(call("mul", {x, Value::Floats{2, 0, -1}})[0]), (Floats{-4, 0, 0, 2, 0, -3}));
  EXPECT_EQ(floats(call("index_select", {x, 0, Value::Ints{1}})[0]), (Floats{1, 2, 3}));
  Device::set_current(before);
}

TEST(Generators, AreArguments) {
  Generator g(7);
  EXPECT_EQ(floats(rand({5}, DType::f32, {}, &g)), floats(philox_uniform({5}, 7, 0)));
  const Floats second = floats(rand({5}, DType::f32, {}, &g));
  EXPECT_NE(second, floats(philox_uniform({5}, 7, 0)));
  g.manual_seed(7);
  (void)call("rand", {5}, {{"generator", g}});
  EXPECT_EQ(floats(call("rand", {5}, {{"generator", g}})[0]), second);
  const RandomRange before = default_generator().state();
  (void)normal(zeros({3}), ones({3}), &g);
  EXPECT_EQ(default_generator().state().offset, before.offset) << "another generator was asked";
}

TEST(DTypes, HaveTheNamesOfPyTorchAndNumPy) {
  for (const auto& [name, dtype] :
       std::initializer_list<std::pair<std::string_view, DType>>{{"float32", DType::f32},
                                                                 {"f32", DType::f32},
                                                                 {"double", DType::f64},
                                                                 {"bool", DType::boolean},
                                                                 {"uint8", DType::u8},
                                                                 {"long", DType::i64},
                                                                 {"bfloat16", DType::bf16},
                                                                 {"float8_e4m3fn", DType::f8e4m3fn},
                                                                 {"int4", DType::i4}}) {
    EXPECT_EQ(dtype_of_text(name), dtype) << name;
  }
  EXPECT_EQ(dtype_of_text("float12"), std::nullopt);
}

TEST(Calls, TakeSeveralNumbersAsAList) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(call("permute", {x, 1, 0})[0].dims(), (Dims{3, 2}));
  EXPECT_EQ(call("reshape", {x, 3, 2})[0].dims(), (Dims{3, 2}));
  EXPECT_EQ(call("reshape", {x, 6})[0].dims(), (Dims{6}));
  EXPECT_EQ(call("zeros", {4, 5})[0].dims(), (Dims{4, 5}));
  EXPECT_EQ(floats(call("flip", {x, 0, 1})[0]), (Floats{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(call("zeros", {2, 2}, {{"dtype", "i32"}})[0].dtype(), DType::i32);
  EXPECT_THROW((void)call("permute", {x, 1, 0.5}), Error);
}

TEST(Calls, TakeNoneForADTypeThatHasADefault) {
  EXPECT_EQ(call("zeros", {Value::Ints{2}}, {{"dtype", Value()}, {"device", Value()}})[0].dtype(), DType::f32);
  EXPECT_EQ(call("one_hot", {Tensor::from({0, 1}), 2}, {{"dtype", Value()}})[0].dtype(), DType::i64);
}

TEST(Calls, RefuseWhatHasNoMeaning) {
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
