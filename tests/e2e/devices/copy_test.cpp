// x.to(device) between every two devices.
#include <cstring>

#include "primitives/text/format.h"
#include "tests/e2e/devices/fixture.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {
namespace {

std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.bytes()), 0xee);
  if (!bytes.empty()) tensor.copy_to_host(bytes.data());
  return bytes;
}

class Pair : public ::testing::Test {
 protected:
  ~Pair() override { EXPECT_EQ(violation(), ""); }

  // `make` makes a tensor on the given device. Copies between all pairs of devices must not change it.
  template <class Make>
  void carries(Make make) {
    for (Device from : all_devices()) {
      const Tensor source = make(from);
      const std::vector<uint8_t> expected = bytes_of(source);
      for (Device to : all_devices()) {
        SCOPED_TRACE(
            fmt::format("{} to {} {}{}", from.spelling(), to.spelling(), dtype_name(source.dtype()), source.dims()));
        poison_free_memory(to, std::max<int64_t>(1, source.bytes()));
        const Tensor copy = source.to(to);
        EXPECT_EQ(copy.device(), to);
        EXPECT_EQ(copy.dtype(), source.dtype());
        EXPECT_EQ(copy.dims(), source.dims());
        EXPECT_EQ(bytes_of(copy), expected);
        EXPECT_EQ(bytes_of(source), expected) << "the source is as it was";
        EXPECT_EQ(copy.impl() == source.impl(), from == to) << "itself where it is there already";
      }
    }
  }

  std::mt19937_64 random_{20261121};
};

constexpr DType every_dtype[] = {
#define EP_DTYPE(name, id, bits, type_class) DType::name,
#define bool boolean
#include "ep_api/dtypes.def"
#undef bool
#undef EP_DTYPE
};

TEST_F(Pair, CarriesEveryDtype) {
  for (DType dtype : every_dtype) {
    std::vector<uint8_t> bytes = random_bytes(random_, static_cast<size_t>(dtype_bytes(dtype, 21)));
    if (dtype == DType::boolean) {
      for (uint8_t& byte : bytes) byte &= 1;
    }
    if (dtype_info(dtype).bits == 4) bytes.back() &= 0x0f;
    carries([&](Device on) { return Tensor::copy_from_host(bytes.data(), {3, 7}, dtype, on); });
  }
}

TEST_F(Pair, CarriesEveryShape) {
  const std::vector<uint8_t> bytes = random_bytes(random_, 4 * 4099);
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{4099}, Dims{2, 3, 5, 7}, Dims{1, 1, 1, 1, 1, 1, 1, 2}}) {
    carries([&](Device on) { return Tensor::copy_from_host(bytes.data(), dims, DType::f32, on); });
  }
}

TEST_F(Pair, CarriesEmptyTensors) {
  for (const Dims& dims : {Dims{0}, Dims{3, 0, 5}}) {
    for (DType dtype : {DType::f32, DType::boolean, DType::i4}) {
      carries([&](Device on) { return Tensor::empty(dims, dtype, on); });
    }
  }
}

TEST_F(Pair, CarriesStridedViews) {
  const std::vector<uint8_t> bytes = random_bytes(random_, 4 * 6 * 10 * 4);
  const auto base = [&](Device on) { return Tensor::copy_from_host(bytes.data(), {6, 10, 4}, DType::i32, on); };
  carries([&](Device on) { return transpose(base(on), 0, 2); });
  carries([&](Device on) { return slice(base(on), 1, 1, 9, 3); });
  carries([&](Device on) { return select(base(on), 2, 3); });
  carries([&](Device on) { return select(select(base(on), 0, 5), 0, 9); });
  carries([&](Device on) { return expand(select(base(on), 1, 4), {3, 6, 4}); });
  carries([&](Device on) { return expand(select(select(select(base(on), 0, 2), 0, 2), 0, 2), {5, 5}); });
}

TEST_F(Pair, CarriesSparseViewsOfLargeTensors) {
  const std::vector<uint8_t> bytes = random_bytes(random_, 300 * 200 * 4);
  const auto base = [&](Device on) { return Tensor::copy_from_host(bytes.data(), {300, 200}, DType::i32, on); };
  carries([&](Device on) { return select(base(on), 1, 117); });
  carries([&](Device on) { return slice(transpose(base(on), 0, 1), 0, 3, 30, 2); });
}

TEST_F(Pair, CarriesMoreThanOneStagingChunk) {
  const int64_t odd = (int64_t{4} << 20) + 4 * 13;
  const std::vector<uint8_t> bytes = random_bytes(random_, static_cast<size_t>(odd));
  carries([&](Device on) { return Tensor::copy_from_host(bytes.data(), {odd / 4}, DType::f32, on); });
}

TEST_F(Pair, UsesItsStagingBuffersInTurns) {
  const int64_t odd = (int64_t{13} << 20) + 4;
  const std::vector<uint8_t> bytes = random_bytes(random_, static_cast<size_t>(odd));
  fakes::async_control().delay_us = 500;
  for (const auto& [from, to] : {std::pair("async:0", "async:1"), {"async:1", "mirror"}, {"mirror", "async:0"}}) {
    const Tensor copy = Tensor::copy_from_host(bytes.data(), {odd}, DType::u8, device(from)).to(device(to));
    EXPECT_EQ(bytes_of(copy), bytes) << from << " to " << to;
  }
  fakes::async_control().delay_us = 0;
}

TEST_F(Pair, IntoTheMiddleOfAnotherTensor) {
  const std::vector<float> twelve = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (Device from : all_devices()) {
    for (Device to : all_devices()) {
      SCOPED_TRACE(fmt::format("{} to {}", from.spelling(), to.spelling()));
      Tensor target = Tensor::from<float>(twelve, {3, 4}, to);
      Tensor column = select(target, 1, 2), row = select(target, 0, 1);
      copy_(column, Tensor::from<float>(std::vector<float>{-1, -2, -3}, {3}, from));
      copy_(row, Tensor::from<float>(std::vector<float>{-9}, {1}, from));
      EXPECT_EQ(target.to_host<float>(), (std::vector<float>{1, 2, -1, 4, -9, -9, -9, -9, 9, 10, -3, 12}));
    }
  }
}

TEST_F(Pair, TwoDevicesInOneOpAreRefusedByName) {
  const Tensor a = Tensor::from<float>(std::vector<float>{1, 2}, {2}, device("async:0"));
  const Tensor b = Tensor::from<float>(std::vector<float>{3, 4}, {2}, device("async:1"));
  try {
    add(a, b);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "add: expected all tensors to be on the same device, but found async:0 (argument 'input') and async:1 "
                 "(argument 'other').");
  }
  EXPECT_EQ(add(a, b.to(a.device())).to_host<float>(), (std::vector<float>{4, 6}));
}

TEST_F(Pair, ManyLargeCopiesAtOnceKeepWithinTheBound) {
  fakes::async_control().delay_us = 300;
  const int64_t elements = int64_t{3} << 18;
  std::vector<float> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  std::vector<Tensor> copies;
  const Tensor source = Tensor::from<float>(values, {elements}, device("async:0"));
  for (int i = 0; i < 12; ++i) copies.push_back(source.to(device("async:1")));
  for (const Tensor& copy : copies) EXPECT_EQ(copy.to_host<float>(), values);
  fakes::async_control().delay_us = 0;
}

}  // namespace
}  // namespace tenon::testing
