// pad on every dispatch target, compared with the reference byte by byte: all modes, element sizes of 1 to 8 bytes,
// axes with and without borders, and operands in other orders, with gaps and with repeated elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct PadCase {
  std::vector<int64_t> dims, low, high;
};

// Strides of `dims` in memory order `order`, outermost axis first, with `gap` unused elements after each row.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims, const std::vector<size_t>& order, int64_t gap) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step = step * dims[order[i]] + (i + 1 == order.size() ? gap : 0);
  }
  return strides;
}

class Pad : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  void check(int32_t dtype, int32_t mode, const PadCase& at, const std::vector<int64_t>& dst_strides,
             const std::vector<int64_t>& src_strides, const std::string& what) {
    std::vector<int64_t> dims = at.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) dims[axis] += at.low[axis] + at.high[axis];
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_pad, {strided(EP_ROLE_DST, dtype, dims, dst_strides),
                                                           strided(EP_ROLE_SRC, dtype, at.dims, src_strides)});
    desc.attributes.pad.mode = mode;
    std::copy(at.low.begin(), at.low.end(), desc.attributes.pad.low);
    std::copy(at.high.begin(), at.high.end(), desc.attributes.pad.high);
    std::vector<unsigned char> src(static_cast<size_t>(extent(desc.operands[1]) * dtype_size(dtype)));
    for (unsigned char& byte : src) byte = static_cast<unsigned char>(engine_() % 0x70);  // no NaN in any dtype
    std::vector<unsigned char> got(static_cast<size_t>(extent(desc.operands[0]) * dtype_size(dtype)), 0xa5);
    std::vector<unsigned char> wanted = got;
    ep_scalar value{EP_DTYPE_f64, 0, {}};
    value.value.f64 = 1.5;
    if (!is_floating(dtype)) {
      value.dtype = EP_DTYPE_i64;
      value.value.i64 = 3;
    }
    void* operands[] = {wanted.data(), src.data()};
    ASSERT_TRUE(reference::run(desc, operands, &value, 1, nullptr).ok()) << what;
    ASSERT_EQ(run_once(*cpu_, desc, {got.data(), src.data()}, {value}).status, EP_STATUS_OK)
        << what << ": " << cpu_->host.sentence();
    const auto differs = std::mismatch(got.begin(), got.end(), wanted.begin());
    ASSERT_EQ(differs.first, got.end()) << what << ", mode " << mode << ", " << dtype_name(static_cast<DType>(dtype))
                                        << ": byte " << differs.first - got.begin();
  }

  void check_layouts(int32_t dtype, int32_t mode, const PadCase& at, const std::string& what) {
    std::vector<int64_t> dims = at.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) dims[axis] += at.low[axis] + at.high[axis];
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::vector<size_t> reversed(order.rbegin(), order.rend());
    std::vector<size_t> turned = order;
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    const auto dense = strides_of(dims, order, 0), src = strides_of(at.dims, order, 0);
    check(dtype, mode, at, dense, src, what + " dense");
    check(dtype, mode, at, dense, strides_of(at.dims, order, 3), what + " with gaps in the source");
    check(dtype, mode, at, strides_of(dims, order, 2), src, what + " with gaps in the result");
    check(dtype, mode, at, dense, strides_of(at.dims, reversed, 0), what + " reversed source");
    check(dtype, mode, at, strides_of(dims, turned, 0), strides_of(at.dims, turned, 0), what + " both turned");
    check(dtype, mode, at, strides_of(dims, turned, 1), src, what + " turned result with gaps");
    auto doubled = src, repeated = src;
    for (int64_t& stride : doubled) stride *= 2;
    repeated[dims.size() / 2] = 0;
    check(dtype, mode, at, dense, doubled, what + " every second element");
    check(dtype, mode, at, dense, repeated, what + " repeated elements");
  }

  std::mt19937 engine_{38};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Pad, EqualsTheReference) {
  const PadCase cases[] = {
      {{5}, {3}, {2}},
      {{1}, {0}, {0}},
      {{40000}, {7}, {9}},
      {{6, 7}, {2, 3}, {1, 0}},
      {{6, 7}, {2, 0}, {3, 0}},
      {{6, 7}, {0, 6}, {0, 5}},
      {{3, 5, 4}, {0, 2, 0}, {0, 1, 0}},
      {{2, 9, 3, 5}, {0, 0, 1, 2}, {0, 0, 2, 1}},
      {{2, 9, 11, 3}, {0, 3, 2, 0}, {0, 1, 4, 0}},
      {{3, 4, 5, 33}, {1, 0, 2, 0}, {0, 0, 1, 0}},
      {{2, 3, 2, 3, 2, 17}, {1, 0, 1, 0, 0, 16}, {0, 2, 0, 1, 0, 4}},
      {{3, 70, 65}, {0, 1, 1}, {0, 1, 1}},
  };
  for (const PadCase& at : cases) {
    const std::string what = fmt::format("case {}", &at - cases);
    for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f8e4m3fn, EP_DTYPE_f16, EP_DTYPE_i32, EP_DTYPE_f64}) {
      for (const int32_t mode : {EP_PAD_CONSTANT, EP_PAD_REFLECT, EP_PAD_EDGE}) check_layouts(dtype, mode, at, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Pad, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
