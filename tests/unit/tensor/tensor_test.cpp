// Creating, reading and overwriting tensors, and the refusals of these functions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "core/tensor/stream.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

class Tensors : public InFlight {};

// The one element of a tensor with these bits.
template <class T>
Scalar item_of(DType dtype, T bits) {
  return Tensor::copy_from_host(&bits, {}, dtype, Device::host()).item();
}

template <class T>
void expect_round_trip(const std::vector<T>& values, DType dtype, Device on) {
  const Tensor tensor = Tensor::from<T>(values, {static_cast<int64_t>(values.size())}, on);
  EXPECT_EQ(tensor.dtype(), dtype);
  EXPECT_EQ(tensor.device(), on);
  EXPECT_EQ(tensor.bytes(), static_cast<int64_t>(values.size() * sizeof(T)));
  EXPECT_EQ(tensor.to_host<T>(), values);
}

TEST_F(Tensors, HoldEveryCppTypeOnAnyDevice) {
  for (Device on : {Device("cpu"), device()}) {
    expect_round_trip<float>(random_floats(random_, 9), DType::f32, on);
    expect_round_trip<double>({1e-300, -2.5, 1.0 / 3}, DType::f64, on);
    expect_round_trip<int8_t>({-128, 7}, DType::i8, on);
    expect_round_trip<int16_t>({-32768, 7, 1}, DType::i16, on);
    expect_round_trip<int32_t>({std::numeric_limits<int32_t>::min(), 7}, DType::i32, on);
    expect_round_trip<int64_t>({std::numeric_limits<int64_t>::min(), 7}, DType::i64, on);
    expect_round_trip<uint8_t>({255, 7, 1}, DType::u8, on);
    expect_round_trip<uint16_t>({65535, 7}, DType::u16, on);
    expect_round_trip<uint32_t>({4294967295u, 7}, DType::u32, on);
    expect_round_trip<uint64_t>({std::numeric_limits<uint64_t>::max(), 7}, DType::u64, on);
  }
}

TEST_F(Tensors, OfMoreBytesThanCanBeCountedAreRefused) {
  const int64_t half = int64_t{1} << 31;
  for (DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    const int64_t other = 2 * half / dtype_size(dtype);  // together 2^63 bytes
    expect_error(
        [&] {
          Tensor::empty({half, other}, dtype, Device("cpu"));
        },
        Code::invalid_argument, {"more than 2^63 - 1"});
    expect_error([&] { Tensor::empty({half, other - 1}, dtype, Device("cpu")); }, Code::out_of_device_memory, {});
  }
}

TEST_F(Tensors, HoldTruthValuesAsBytes) {
  const bool values[] = {true, false, true};
  const Tensor tensor = Tensor::from<bool>(values, {3}, Device("cpu"));
  EXPECT_EQ(tensor.dtype(), DType::boolean);
  EXPECT_EQ(tensor.to_host<uint8_t>(), (std::vector<uint8_t>{1, 0, 1}));
}

TEST_F(Tensors, ARefusalToMakeOneNamesShapeAndReason) {
  constexpr int64_t big = int64_t{1} << 61;
  constexpr Code bad = Code::invalid_argument;
  const std::vector<float> three = {1, 2, 3};
  expect_error([&] { Tensor::from<float>(three, {2, 2}); }, bad, {"3 values", "[2, 2]"});
  expect_error([&] { Tensor::from<float>(three, {3, -1}); }, bad, {"3 values", "[3, -1]"});
  expect_error([&] { Tensor::empty({2, -7}, DType::f32); }, bad, {"[2, -7]", "-7 is negative"});
  expect_error([&] { Tensor::empty({big, 4}, DType::f64); }, bad, {"[2305843009213693952, 4]", "2^63 - 1"});
  expect_error([&] { Tensor::empty({0, big, 4}, DType::f64); }, bad, {"2^63 - 1"});
  expect_error([&] { Tensor::empty({2}, DType::none); }, bad, {"[2]", "no dtype has number 0"});
  expect_error([&] { Tensor::empty({int64_t{1} << 50}, DType::u8, Device("cpu")); }, Code::out_of_device_memory,
               {"1125899906842624"});
  EXPECT_EQ(Tensor::from<float>(three, {3}, Device("cpu")).to_host<float>(), three) << "the next call works";
}

TEST_F(Tensors, ToHostWantsTheTensorsOwnType) {
  const Tensor tensor = Tensor::from<float>(random_floats(random_, 2), {2}, Device("cpu"));
  expect_error([&] { tensor.to_host<double>(); }, Code::invalid_argument, {"holds f32, not f64"});
  const Tensor halves = Tensor::empty({2}, DType::f16, Device("cpu"));
  expect_error([&] { halves.to_host<uint16_t>(); }, Code::invalid_argument, {"holds f16, not u16"});
}

TEST_F(Tensors, DimCountsFromTheEndToo) {
  const Tensor tensor = Tensor::empty({3, 5, 7}, DType::u8, Device("cpu"));
  EXPECT_EQ(tensor.rank(), 3);
  EXPECT_EQ(tensor.elements(), 105);
  for (int64_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(tensor.dim(axis), 3 + 2 * axis);
    EXPECT_EQ(tensor.dim(axis - 3), 3 + 2 * axis);
  }
  for (int64_t axis : {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::min()}) {
    expect_error([&] { tensor.dim(axis); }, Code::invalid_argument, {std::to_string(axis), "[-3, 3)", "[3, 5, 7]"});
  }
}

TEST_F(Tensors, ItemReadsEveryDType) {
  EXPECT_EQ(item_of(DType::boolean, uint8_t{1}), Scalar(true));
  EXPECT_EQ(item_of(DType::i8, int8_t{-5}), Scalar(-5));
  EXPECT_EQ(item_of(DType::i16, int16_t{-300}), Scalar(-300));
  EXPECT_EQ(item_of(DType::i32, int32_t{-70000}), Scalar(-70000));
  EXPECT_EQ(item_of(DType::i64, std::numeric_limits<int64_t>::min()), Scalar(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(item_of(DType::u8, uint8_t{200}), Scalar(200));
  EXPECT_EQ(item_of(DType::u16, uint16_t{60000}), Scalar(60000));
  EXPECT_EQ(item_of(DType::u32, uint32_t{4000000000}), Scalar(int64_t{4000000000}));
  EXPECT_EQ(item_of(DType::u64, std::numeric_limits<uint64_t>::max()), Scalar(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(item_of(DType::f16, uint16_t{0xc248}), Scalar(-3.140625));
  EXPECT_EQ(item_of(DType::bf16, uint16_t{0x4049}), Scalar(3.140625));
  EXPECT_EQ(item_of(DType::f32, -0.1f), Scalar(static_cast<double>(-0.1f)));
  EXPECT_EQ(item_of(DType::f64, 0.1), Scalar(0.1));
  EXPECT_EQ(item_of(DType::f8e4m3fn, uint8_t{0x7e}), Scalar(448.0));
  EXPECT_EQ(item_of(DType::f8e5m2, uint8_t{0xc2}), Scalar(-3.0));
  EXPECT_EQ(item_of(DType::i4, uint8_t{0xf9}), Scalar(-7)) << "the low half";
  EXPECT_EQ(item_of(DType::u4, uint8_t{0xf9}), Scalar(9));
}

TEST_F(Tensors, ItemWantsOneElement) {
  const std::vector<float> values = random_floats(random_, 6);
  const Tensor tensor = Tensor::from<float>(values, {2, 3}, device());
  expect_error([&] { tensor.item(); }, Code::invalid_argument, {"[2, 3]", "6 elements"});
  expect_error([&] { slice(tensor, 0, 0, 0).item(); }, Code::invalid_argument, {"[0, 3]", "0 elements"});
  EXPECT_EQ(select(select(tensor, 0, 1), 0, 2).item(), Scalar(static_cast<double>(values[5])));
}

TEST_F(Tensors, CopyFromOverwritesViewsAndNothingElse) {
  for (Device on : {Device("cpu"), device()}) {
    SCOPED_TRACE(on.spelling());
    const std::vector<float> before = random_floats(random_, 20), source = random_floats(random_, 6);
    const Tensor tensor = Tensor::from<float>(before, {4, 5}, on);
    Tensor rows = slice(tensor, 0, 1, 2), columns = slice(transpose(tensor, 0, 1), 1, 2, 4);
    fakes::async_control().delay_us = 200;
    rows.copy_from(source.data());
    columns.copy_from(before.data());
    std::vector<float> expected = before;
    for (size_t i = 0; i < 5; ++i) expected[5 + i] = source[i];
    for (size_t column = 0; column < 5; ++column) {
      for (size_t row = 2; row < 4; ++row) expected[row * 5 + column] = before[column * 2 + row - 2];
    }
    EXPECT_EQ(tensor.to_host<float>(), expected);
    EXPECT_EQ(rows.to_host<float>(), (std::vector<float>(source.begin(), source.begin() + 5)));
  }
}

// A small and a large source. The call has read both when it returns.
TEST_F(Tensors, TheSourceOfACopyIsFreeAfterwards) {
  for (size_t elements : {size_t{100}, size_t{1} << 18}) {
    fakes::async_control().delay_us = 500;
    const std::vector<float> values = random_floats(random_, elements);
    std::vector<float> source = values;
    Tensor made = Tensor::from<float>(source, {static_cast<int64_t>(elements)}, device());
    std::fill(source.begin(), source.end(), 5.0f);
    EXPECT_EQ(made.to_host<float>(), values);
    source = values;
    made.copy_from(source.data());
    std::fill(source.begin(), source.end(), 6.0f);
    EXPECT_EQ(made.to_host<float>(), values);
  }
}

TEST_F(Tensors, DataIsAnAddressWhereTheHostReachesIt) {
  const std::vector<float> values = random_floats(random_, 12);
  const Tensor tensor = Tensor::from<float>(values, {3, 4}, Device::host());
  const Tensor row = select(tensor, 0, 2);
  EXPECT_EQ(row.data(), static_cast<float*>(tensor.data()) + 8);
  EXPECT_EQ(*static_cast<float*>(row.data()), values[8]);
  EXPECT_EQ(tensor.to(device()).data(), nullptr);
}

TEST_F(Tensors, ToTheDeviceWhereItIsGivesItself) {
  const Tensor tensor = Tensor::from<float>(random_floats(random_, 4), {4}, device());
  EXPECT_EQ(tensor.to(device()).impl(), tensor.impl());
  EXPECT_EQ(tensor.to(Device()).impl(), tensor.impl());
  EXPECT_EQ(tensor.to(Device("cpu")).device(), Device("cpu"));
}

TEST_F(Tensors, ValuesBeingRecordedHaveNoData) {
  graph::Recorder recorder(Device::host());
  Tensor value = recorder.input(DType::f32, {2, 3});
  std::vector<float> room(6, 1.0f);
  constexpr Code bad = Code::invalid_argument;
  expect_error([&] { value.copy_to_host(room.data()); }, bad, {"copy_to_host", "[2, 3]", "being recorded"});
  expect_error([&] { value.copy_from(room.data()); }, bad, {"copy_from", "[2, 3]", "being recorded"});
  EXPECT_EQ(value.data(), nullptr);
  EXPECT_TRUE(error_of([&] { value.wait(); }).ok());
}

TEST_F(Tensors, TheCurrentDeviceIsEachThreadsOwn) {
  Device::set_current(device());
  EXPECT_EQ(Tensor::empty({1}, DType::f32).device(), device());
  EXPECT_EQ(Tensor::empty({1}, DType::f32, Device("cpu")).device(), Device("cpu"));
  Device elsewhere = device();
  std::thread([&] { elsewhere = Device::current(); }).join();
  EXPECT_NE(elsewhere, device());
  Device::set_current(Device());
  EXPECT_EQ(Device::current(), elsewhere);
}

TEST_F(Tensors, CrossStreamsFreely) {
  static const Stream second(device());
  EXPECT_EQ(second.device(), device());
  fakes::async_control().delay_us = 300;
  const std::vector<float> values = random_floats(random_, 512);
  Tensor x = Tensor::from<float>(values, {512}, device());
  std::vector<float> expected = values;
  for (float& value : expected) value = std::max(value, 0.0f);
  for (int i = 0; i < 20; ++i) {
    if (i % 2 == 0) {
      x = relu(x);
    } else {
      const StreamScope scope(second);
      x = relu(x);
    }
  }
  EXPECT_EQ(x.to_host<float>(), expected);
}

TEST(Scalars, KeepIntegersExactAndSaturateFloats) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Scalar(most).to_int(), most);
  EXPECT_EQ(Scalar(-2.9).to_int(), -2);
  EXPECT_EQ(Scalar(1e30).to_int(), most);
  EXPECT_EQ(Scalar(-1e30).to_int(), least);
  EXPECT_EQ(Scalar(std::nan("")).to_int(), 0);
  EXPECT_EQ(Scalar(std::numeric_limits<uint64_t>::max()).to_double(), 18446744073709551616.0);
  EXPECT_EQ(Scalar(true).dtype(), DType::boolean);
  EXPECT_EQ(Scalar(3).dtype(), DType::i64);
  EXPECT_EQ(Scalar(3u).dtype(), DType::u64);
  EXPECT_EQ(Scalar(3.0f).dtype(), DType::f64);
  EXPECT_FALSE(Scalar(1) == Scalar(true)) << "the kind counts";
}

TEST(Devices, AHandleThatNamesNoneSaysSo) {
  const Device none;
  EXPECT_EQ(none.spelling(), "no device");
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"name", [&] { static_cast<void>(none.name()); }},
      {"synchronous", [&] { static_cast<void>(none.synchronous()); }},
      {"synchronize", [&] { none.synchronize(); }},
      {"barrier", [&] { none.barrier(); }},
      {"memory_stats", [&] { static_cast<void>(none.memory_stats()); }},
      {"trim", [&] { none.trim(); }},
  };
  for (const auto& [function, call] : calls) {
    const Status error = error_of(call);
    EXPECT_EQ(error.code(), Code::invalid_argument) << function;
    EXPECT_EQ(error.message(), std::string("Device::") + function + ": this handle names no device.");
    EXPECT_EQ(error.remedy(), "Make the handle with a spelling, such as Device(\"cpu\"), or with Device::current().");
  }
}

}  // namespace
}  // namespace tenon::testing
