// Tensors as text, compared with text written by hand.
#include "core/tensor/print.h"

#include <sys/mman.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

class Print : public InFlight {};

template <class T>
std::string print(const std::vector<T>& values, const Dims& dims) {
  return to_string(Tensor::from<T>(values, dims, Device("cpu")));
}

// A tensor of elements given by their bits.
template <class T>
std::string print_bits(const std::vector<T>& bits, const Dims& dims, DType dtype) {
  return to_string(Tensor::copy_from_host(bits.data(), dims, dtype, Device("cpu")));
}

template <class T>
std::vector<T> count_from(T first, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(Print, AlignsColumnsAtThePoint) {
  EXPECT_EQ(print<float>({1.5f, 2, -0.0625f, 30}, {2, 2}),
            "[[ 1.5     2.    ]\n"
            " [-0.0625 30.    ]]\n"
            "f32 [2, 2] cpu:0");
}

TEST_F(Print, WritesAsManyDigitsAsTheDTypeNeeds) {
  EXPECT_EQ(print<float>({0.1f, 0.3f}, {2}), "[0.1 0.3]\nf32 [2] cpu:0");
  EXPECT_EQ(print<double>({0.1, 0.1 + 0.2, 2.0 / 3}, {3}), "[0.1        0.3        0.66666667]\nf64 [3] cpu:0");
  EXPECT_EQ(print<float>({16777216, 1048577}, {2}), "[16777216.  1048577.]\nf32 [2] cpu:0");
}

TEST_F(Print, TurnsToExponentsWhereTheRangeIsWide) {
  EXPECT_EQ(print<float>({1, 2.5e-10f, -3e20f}, {3}), "[ 1.0e+00  2.5e-10 -3.0e+20]\nf32 [3] cpu:0");
  EXPECT_EQ(print<double>({1e100, 1e101}, {2}), "[1.e+100 1.e+101]\nf64 [2] cpu:0");
  EXPECT_EQ(print<double>({1, 1000}, {2}), "[   1. 1000.]\nf64 [2] cpu:0");
  EXPECT_EQ(print<double>({1, 1001}, {2}), "[1.000e+00 1.001e+03]\nf64 [2] cpu:0");
}

TEST_F(Print, ShowsWhatIsNoNumber) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(print<float>({nan, -inf, 1.25f, inf, -0.0f}, {5}), "[  nan  -inf  1.25   inf -0.  ]\nf32 [5] cpu:0");
  EXPECT_EQ(print<float>({nan, nan}, {2}), "[nan nan]\nf32 [2] cpu:0");
}

TEST_F(Print, ShowsIntegersAndTruth) {
  EXPECT_EQ(print<int64_t>({std::numeric_limits<int64_t>::min(), 7}, {2}),
            "[-9223372036854775808                    7]\ni64 [2] cpu:0");
  EXPECT_EQ(print<uint64_t>({std::numeric_limits<uint64_t>::max()}, {1}), "[18446744073709551615]\nu64 [1] cpu:0");
  EXPECT_EQ(print<int8_t>({-128, 5, 127}, {3}), "[-128    5  127]\ni8 [3] cpu:0");
  EXPECT_EQ(print<uint8_t>({128, 5}, {2}), "[128   5]\nu8 [2] cpu:0");
  EXPECT_EQ(print<int16_t>({-3}, {1}), "[-3]\ni16 [1] cpu:0");
  EXPECT_EQ(print<uint16_t>({65535}, {1}), "[65535]\nu16 [1] cpu:0");
  EXPECT_EQ(print<int32_t>({-2147483647}, {1}), "[-2147483647]\ni32 [1] cpu:0");
  EXPECT_EQ(print<uint32_t>({4294967295u}, {1}), "[4294967295]\nu32 [1] cpu:0");
  EXPECT_EQ(print_bits<uint8_t>({1, 0, 1}, {3}, DType::boolean), "[ true false  true]\nbool [3] cpu:0");
}

TEST_F(Print, ShowsNarrowTypesAsNumbers) {
  EXPECT_EQ(print_bits<uint16_t>({0x3c00, 0x2e66, 0x7bff, 0xfc00}, {4}, DType::f16),
            "[1.00e+00 1.00e-01 6.55e+04     -inf]\nf16 [4] cpu:0");
  EXPECT_EQ(print_bits<uint16_t>({0x3c00, 0x2e66}, {2}, DType::f16), "[1.  0.1]\nf16 [2] cpu:0");
  EXPECT_EQ(print_bits<uint16_t>({0x4049, 0xbf80}, {2}, DType::bf16), "[ 3.14 -1.  ]\nbf16 [2] cpu:0");
  EXPECT_EQ(print_bits<uint8_t>({0x38, 0x7e, 0xff}, {3}, DType::f8e4m3fn), "[  1. 448.  nan]\nf8e4m3fn [3] cpu:0");
  EXPECT_EQ(print_bits<uint8_t>({0x3c, 0xc2, 0x7c}, {3}, DType::f8e5m2), "[ 1. -3. inf]\nf8e5m2 [3] cpu:0");
  EXPECT_EQ(print_bits<uint8_t>({0x71, 0x08}, {3}, DType::i4), "[ 1  7 -8]\ni4 [3] cpu:0");
  EXPECT_EQ(print_bits<uint8_t>({0x71, 0x0f}, {3}, DType::u4), "[ 1  7 15]\nu4 [3] cpu:0");
}

TEST_F(Print, SeparatesTheOuterAxesByBlankLines) {
  EXPECT_EQ(print<int32_t>(count_from(1, 12), {2, 1, 2, 3}),
            "[[[[ 1  2  3]\n"
            "   [ 4  5  6]]]\n"
            "\n"
            "\n"
            " [[[ 7  8  9]\n"
            "   [10 11 12]]]]\n"
            "i32 [2, 1, 2, 3] cpu:0");
}

TEST_F(Print, BreaksLongLines) {
  EXPECT_EQ(print<int32_t>(count_from(100, 44), {2, 22}),
            "[[100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117\n"
            "  118 119 120 121]\n"
            " [122 123 124 125 126 127 128 129 130 131 132 133 134 135 136 137 138 139\n"
            "  140 141 142 143]]\n"
            "i32 [2, 22] cpu:0");
}

TEST_F(Print, ElidesTheMiddleOfLargeTensors) {
  EXPECT_EQ(print<int32_t>(count_from(0, 1001), {1001}), "[   0    1    2 ...  998  999 1000]\ni32 [1001] cpu:0");
  EXPECT_EQ(print<int32_t>(count_from(0, 10000), {100, 100}),
            "[[   0    1    2 ...   97   98   99]\n"
            " [ 100  101  102 ...  197  198  199]\n"
            " [ 200  201  202 ...  297  298  299]\n"
            " ...\n"
            " [9700 9701 9702 ... 9797 9798 9799]\n"
            " [9800 9801 9802 ... 9897 9898 9899]\n"
            " [9900 9901 9902 ... 9997 9998 9999]]\n"
            "i32 [100, 100] cpu:0");
  EXPECT_EQ(print<int32_t>(count_from(0, 2000), {2, 500, 2}),
            "[[[   0    1]\n"
            "  [   2    3]\n"
            "  [   4    5]\n"
            "  ...\n"
            "  [ 994  995]\n"
            "  [ 996  997]\n"
            "  [ 998  999]]\n"
            "\n"
            " [[1000 1001]\n"
            "  [1002 1003]\n"
            "  [1004 1005]\n"
            "  ...\n"
            "  [1994 1995]\n"
            "  [1996 1997]\n"
            "  [1998 1999]]]\n"
            "i32 [2, 500, 2] cpu:0");
  EXPECT_EQ(print<int32_t>(count_from(1, 2000), {1000, 1, 2}),
            "[[[   1    2]]\n\n [[   3    4]]\n\n [[   5    6]]\n\n ...\n\n"
            " [[1995 1996]]\n\n [[1997 1998]]\n\n [[1999 2000]]]\n"
            "i32 [1000, 1, 2] cpu:0");
}

TEST_F(Print, ElidesPackedTensorsToo) {
  std::vector<uint8_t> nibbles(600, 0x21);
  EXPECT_EQ(print_bits(nibbles, {1200}, DType::u4), "[1 2 1 ... 2 1 2]\nu4 [1200] cpu:0");
}

TEST_F(Print, ShowsAThousandElementsWhole) {
  const std::string text = print<int32_t>(count_from(0, 1000), {1000});
  EXPECT_EQ(text.find("..."), std::string::npos);
  EXPECT_NE(text.find("500"), std::string::npos);
}

// Printing must not read rows that it does not show.
TEST_F(Print, ReadsNothingOfWhatItDoesNotShow) {
  constexpr size_t side = 4096, row = side * sizeof(float), bytes = side * row;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* values = static_cast<float*>(memory);
  for (size_t i : {size_t{0}, size_t{2}, side - 3, side - 1}) values[i * side + i] = static_cast<float>(i % 1000 + 1);
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + 3 * row, bytes - 6 * row, PROT_NONE), 0);
  {
    const Tensor tensor = Tensor::borrow(memory, {side, side}, {}, DType::f32, nullptr);
    const std::string expected =
        "[[ 1.  0.  0. ...  0.  0.  0.]\n"
        " [ 0.  0.  0. ...  0.  0.  0.]\n"
        " [ 0.  0.  3. ...  0.  0.  0.]\n"
        " ...\n"
        " [ 0.  0.  0. ... 94.  0.  0.]\n"
        " [ 0.  0.  0. ...  0.  0.  0.]\n"
        " [ 0.  0.  0. ...  0.  0. 96.]]\n"
        "f32 [4096, 4096] cpu:0";
    EXPECT_EQ(to_string(tensor), expected);
  }
  munmap(memory, bytes);
}

TEST_F(Print, ShowsScalarsAndEmptyTensors) {
  EXPECT_EQ(print<double>({2.75}, {}), "2.75\nf64 [] cpu:0");
  EXPECT_EQ(print<int32_t>({}, {0, 3}), "[]\ni32 [0, 3] cpu:0");
}

TEST_F(Print, ShowsViewsInTheirOwnOrder) {
  const Tensor base = Tensor::from<int32_t>(count_from(0, 12), {3, 4}, Device("cpu"));
  EXPECT_EQ(to_string(slice(transpose(base, 0, 1), 0, 1, 3)), "[[ 1  5  9]\n [ 2  6 10]]\ni32 [2, 3] cpu:0");
  EXPECT_EQ(to_string(expand(slice(base, 0, 1, 2), {2, 4})), "[[4 5 6 7]\n [4 5 6 7]]\ni32 [2, 4] cpu:0");
}

TEST_F(Print, WaitsForOtherDevicesAndNamesThem) {
  fakes::async_control().delay_us = 300;
  const Tensor x = Tensor::from<float>(std::vector<float>{-1.5f, 2.25f}, {2}, device());
  EXPECT_EQ(to_string(relu(x)), "[0.   2.25]\nf32 [2] async:0");
  fakes::async_control().fail_launch = 0;
  const Tensor bad = relu(x);
  expect_error([&] { to_string(bad); }, Code::internal, {"this launch was told to fail", "relu"});
}

TEST_F(Print, ShowsWhatHasNoElementsYet) {
  EXPECT_EQ(to_string(Tensor()), "undefined");
  graph::Recorder recorder(Device::host());
  EXPECT_EQ(to_string(recorder.input(DType::f32, {2, 3})), "f32 [2, 3] cpu:0, being recorded");
}

TEST_F(Print, StreamsTheSameText) {
  const Tensor tensor = Tensor::from<int32_t>(std::vector<int32_t>{4, -5}, {2}, Device("cpu"));
  std::ostringstream out;
  out << "x = " << tensor << ';';
  EXPECT_EQ(out.str(), fmt::format("x = {};", tensor));
}

TEST(Print, ShowsDimsDTypesDevicesAndNumbers) {
  std::ostringstream out;
  out << Dims{2, 3} << ' ' << DType::bf16 << ' ' << Scalar(2) << ' ' << Scalar(0.5) << ' ' << Scalar(true);
  EXPECT_EQ(out.str(), "[2, 3] bf16 2 0.5 true");
  out.str({});
  out << Device::host();
  EXPECT_EQ(out.str(), Device::host().spelling());
}

}  // namespace
}  // namespace tenon::testing
