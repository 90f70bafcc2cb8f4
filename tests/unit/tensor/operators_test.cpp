// Operators on tensors, compared with plain loops.
#include "core/ops/operators.h"

#include <type_traits>

#include "tests/unit/tensor/expect_error.h"
#include "tests/unit/tensor/lent_memory.h"

namespace tenon::testing {
namespace {

static_assert(std::is_same_v<decltype(std::declval<const Tensor&>() + 1), Tensor>);
static_assert(std::is_same_v<decltype(std::declval<Tensor&>() += 1), Tensor&>);
static_assert(std::is_same_v<decltype(std::declval<const Tensor&>() * true), Tensor>);
// A text or a pointer is not a number, although C++ converts it to a bool.
template <class T>
constexpr bool adds_to_a_tensor = requires(const Tensor& tensor, T value) {
  tensor + value;
};
static_assert(adds_to_a_tensor<float>);
static_assert(!adds_to_a_tensor<const char*> && !adds_to_a_tensor<const char (&)[2]> && !adds_to_a_tensor<float*>);

class Operators : public ::testing::Test {
 protected:
  Tensor tensor(const std::vector<float>& values, const Dims& dims) {
    return Tensor::from<float>(values, dims, Device("cpu"));
  }
  // Checks that each value of `got` is `expected` of the values of a and b.
  template <class F>
  void expect(const Tensor& got, F expected) {
    const std::vector<float> values = got.to_host<float>();
    ASSERT_EQ(values.size(), a.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], expected(a[i], b[i])) << i;
  }

  std::mt19937_64 random{11};
  std::vector<float> a = random_floats(random, 12), b = random_floats(random, 12);
  Tensor x = tensor(a, {3, 4}), y = tensor(b, {3, 4});
};

TEST_F(Operators, OfTwoTensorsGoByElement) {
  expect(x + y, [](float a, float b) { return a + b; });
  expect(x - y, [](float a, float b) { return a - b; });
  expect(x * y, [](float a, float b) { return a * b; });
  expect(x / y, [](float a, float b) { return a / b; });
  expect(-x, [](float a, float) { return -a; });
}

TEST_F(Operators, TakeNumbersOnEitherSide) {
  expect(x + 2, [](float a, float) { return a + 2; });
  expect(2.5 + x, [](float a, float) { return 2.5f + a; });
  expect(x - 0.5f, [](float a, float) { return a - 0.5f; });
  expect(3u - x, [](float a, float) { return 3 - a; });
  expect(x * int64_t{4}, [](float a, float) { return a * 4; });
  expect(0.25 * x, [](float a, float) { return 0.25f * a; });
  expect(x / 8, [](float a, float) { return a / 8; });
  expect(1 / x, [](float a, float) { return 1 / a; });
}

TEST_F(Operators, BindAsInCpp) {
  expect(-x + 2 * y - x / 2, [](float a, float b) { return -a + 2 * b - a / 2; });
  expect((x + y) * (x - y), [](float a, float b) { return (a + b) * (a - b); });
}

TEST_F(Operators, BroadcastAndPromoteAsTheirFunctionsDo) {
  const Tensor row = tensor({1, 2, 3, 4}, {4});
  EXPECT_EQ((x * row).dims(), (Dims{3, 4}));
  EXPECT_EQ((x * row).to_host<float>()[6], a[6] * 3);
  const Tensor counts = Tensor::from<int32_t>(std::vector<int32_t>{7, -9}, {2}, Device("cpu"));
  EXPECT_EQ((counts * 3 - 1).to_host<int32_t>(), (std::vector<int32_t>{20, -28}));
  EXPECT_EQ((counts / 2).to_host<float>(), (std::vector<float>{3.5f, -4.5f}));
  EXPECT_EQ((counts + 0.5).dtype(), DType::f32);
}

TEST_F(Operators, OnThemselvesWriteInPlace) {
  const Tensor view = transpose(x, 0, 1);
  const void* data = x.data();
  ((x += y) *= 2) -= 1;
  expect(x, [](float a, float b) { return (a + b) * 2 - 1; });
  EXPECT_EQ(x.data(), data);
  EXPECT_EQ(view.to_host<float>()[1], (a[4] + b[4]) * 2 - 1);
  y /= 4;
  expect(y, [](float, float b) { return b / 4; });
}

TEST_F(Operators, RefuseWhatTheirFunctionsRefuse) {
  const Tensor other = tensor({1, 2, 3}, {3});
  const Status status = error_of([&] { x + other; });
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(), error_of([&] { add(x, other); }).message());
  Tensor counts = Tensor::from<int32_t>(std::vector<int32_t>{7}, {1}, Device("cpu"));
  EXPECT_EQ(error_of([&] { counts += 0.5; }).code(), Code::invalid_argument);
  EXPECT_EQ(counts.to_host<int32_t>()[0], 7);
}

}  // namespace
}  // namespace tenon::testing
