// Casts between every two types of at least a byte, on every dispatch target, against the double-precision reference:
// numbers beside the ones where rounding or saturation changes, in dense, strided and repeated operands of odd lengths.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

std::vector<DType> types() {
  std::vector<DType> found;
#define EP_DTYPE(name, id, bits, type_class) \
  if constexpr ((bits) >= 8) found.push_back(static_cast<DType>(id));
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  return found;
}

// Numbers with 1 to 62 significant bits around powers of two, and their neighbours: ties, almost ties, denormals.
std::vector<double> floats() {
  std::vector<double> values = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1e300, -1e300, 5e-324, 1.7e308};
  for (int power = -155; power <= 130; ++power) {
    for (const double factor : {1.0, 1.5, 1 + 1.0 / 256, 1 + 3.0 / 256, 1 + 1.0 / 2048, 1 + 3.0 / 2048, 1 + 1.0 / 16}) {
      const double value = std::ldexp(factor, power);
      for (const double near : {std::nextafter(value, 0.0), value, std::nextafter(value, INFINITY),
                                value * (1 - 0x1p-30), value * (1 + 0x1p-30)}) {
        values.push_back(near);
        values.push_back(-near);
      }
    }
  }
  return values;
}

std::vector<int64_t> integers() {
  std::vector<int64_t> values = {0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const int64_t tie : {int64_t{0}, int64_t{1} << (bit > 8 ? bit - 8 : 0), int64_t{3} << (bit > 8 ? bit - 8 : 0),
                              int64_t{1} << (bit > 11 ? bit - 11 : 0), int64_t{3} << (bit > 11 ? bit - 11 : 0)}) {
      for (const int64_t near : {-1, 0, 1}) {
        const auto value = static_cast<int64_t>((uint64_t{1} << bit) + static_cast<uint64_t>(tie + near));
        values.push_back(value);
        values.push_back(static_cast<int64_t>(0 - static_cast<uint64_t>(value)));
      }
    }
  }
  return values;
}

class Cast : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  static std::vector<char> source(DType from) {
    const auto size = static_cast<size_t>(dtype_info(from).bits / 8);
    std::vector<char> bytes;
    const auto fill = [&](const auto& values) {
      bytes.resize(values.size() * size);
      for (size_t i = 0; i < values.size(); ++i)
        reference::store(from, bytes.data(), static_cast<int64_t>(i), values[i]);
    };
    if (is_floating(from))
      fill(floats());
    else
      fill(integers());
    return bytes;
  }

  // Casts `count` elements that are `src_stride` apart to elements that are `dst_stride` apart.
  void compare(DType to, DType from, const std::vector<char>& src, int64_t count, int64_t dst_stride,
               int64_t src_stride) {
    const auto size = static_cast<size_t>(dtype_info(to).bits / 8);
    std::vector<char> dst(static_cast<size_t>(count * dst_stride) * size, 0x55), wanted = dst;
    const ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_copy, {strided(EP_ROLE_DST, static_cast<int32_t>(to), {count}, {dst_stride}),
                                       strided(EP_ROLE_SRC, static_cast<int32_t>(from), {count}, {src_stride})});
    std::vector<char> operand = src;
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), operand.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < count; ++i) {
      reference::with_compute_type(from, [&](auto type) {
        using T = decltype(type);
        reference::store(to, wanted.data(), i * dst_stride, reference::load<T>(from, src.data(), i * src_stride));
      });
      const auto at = static_cast<size_t>(i * dst_stride) * size;
      if (std::memcmp(dst.data() + at, wanted.data() + at, size) == 0) continue;
      const auto got = reference::load<double>(to, dst.data(), i * dst_stride),
                 want = reference::load<double>(to, wanted.data(), i * dst_stride);
      ASSERT_TRUE(std::isnan(got) && std::isnan(want))
          << dtype_name(from) << " to " << dtype_name(to) << ", strides " << src_stride << " and " << dst_stride
          << ": element " << i << ", " << reference::load<double>(from, src.data(), i * src_stride) << ", is " << got
          << ", not " << want;
    }
    for (size_t byte = 0; byte < dst.size(); ++byte) {
      const bool in_gap = byte / size % static_cast<size_t>(dst_stride) != 0;
      ASSERT_TRUE(!in_gap || dst[byte] == 0x55) << "a gap between results is overwritten";
    }
  }

  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Cast, RoundsOnceAndSaturates) {
  for (const DType from : types()) {
    const std::vector<char> src = source(from);
    const auto count = static_cast<int64_t>(src.size()) / (dtype_info(from).bits / 8);
    for (const DType to : types()) {
      compare(to, from, src, count, 1, 1);
      compare(to, from, src, count / 3, 1, 3);
      compare(to, from, src, count / 2, 2, 1);
      compare(to, from, src, count / 2, 3, 2);
    }
  }
}

TEST_P(Cast, OddLengthsAndOneRepeatedElement) {
  for (const DType from : types()) {
    const std::vector<char> src = source(from);
    for (const DType to : types()) {
      for (const int64_t count : {1, 2, 3, 7, 15, 17, 31, 33, 65}) compare(to, from, src, count, 1, 1);
      compare(to, from, src, 700, 1, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Cast, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
