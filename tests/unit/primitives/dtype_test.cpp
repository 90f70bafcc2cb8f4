#include "primitives/dtype/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "primitives/dtype/convert.h"

namespace tenon {
namespace {

constexpr DType all_types[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

TEST(DType, NamesReadBack) {
  for (DType dtype : all_types) EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  EXPECT_EQ(dtype_name(DType::boolean), "bool");
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
}

TEST(DType, UnknownIdsAreNone) {
  for (int32_t id : {0, -1, 18, 1000}) EXPECT_EQ(dtype_info(static_cast<DType>(id)).bits, 0);
}

TEST(DType, PackedTypesRoundUpToBytes) {
  EXPECT_EQ(dtype_bytes(DType::i4, 3), 2);
  EXPECT_EQ(dtype_bytes(DType::u4, 4), 2);
  EXPECT_EQ(dtype_bytes(DType::f32, 3), 12);
  const int64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(dtype_bytes(DType::u8, largest), largest) << "its bits are more than 2^63";
  EXPECT_EQ(dtype_bytes(DType::f32, largest / 4), largest / 4 * 4);
  EXPECT_EQ(dtype_bytes(DType::u4, largest), largest / 2 + 1);
  EXPECT_EQ(dtype_size(DType::i4), 0);
  EXPECT_EQ(dtype_size(DType::f64), 8);
}

TEST(DType, PromotionIsSymmetricAndKeepsEqualTypes) {
  for (DType a : all_types) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : all_types) EXPECT_EQ(promote(a, b), promote(b, a)) << dtype_name(a) << " " << dtype_name(b);
  }
}

// The table of torch.promote_types.
TEST(DType, PromotesAsPyTorch) {
  EXPECT_EQ(promote(DType::boolean, DType::u8), DType::u8);
  EXPECT_EQ(promote(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(promote(DType::u8, DType::i32), DType::i32);
  EXPECT_EQ(promote(DType::i8, DType::i64), DType::i64);
  EXPECT_EQ(promote(DType::i64, DType::f16), DType::f16);
  EXPECT_EQ(promote(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(promote(DType::bf16, DType::f32), DType::f32);
  EXPECT_EQ(promote(DType::f32, DType::f64), DType::f64);
}

TEST(Convert, EveryNarrowNumberReadsBack) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2}) {
    const uint64_t count = uint64_t{1} << dtype_info(dtype).bits;
    for (uint64_t bits = 0; bits < count; ++bits) {
      const double value = decode_float(dtype, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode_float(dtype, encode_float(dtype, value))));
      } else {
        EXPECT_EQ(encode_float(dtype, value), bits) << dtype_name(dtype) << " " << value;
      }
    }
  }
}

// Half way between two neighbours rounds to the even one; any other value rounds to the nearer one.
TEST(Convert, RoundsToNearestEven) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2}) {
    const uint64_t sign = uint64_t{1} << (dtype_info(dtype).bits - 1);
    for (uint64_t bits = 0; bits + 1 < sign; ++bits) {
      const double low = decode_float(dtype, bits);
      const double high = decode_float(dtype, bits + 1);
      if (!std::isfinite(high)) break;
      const double middle = (low + high) / 2;
      EXPECT_EQ(encode_float(dtype, middle), bits % 2 == 0 ? bits : bits + 1);
      EXPECT_EQ(encode_float(dtype, std::nextafter(middle, 0.0)), bits);
      EXPECT_EQ(encode_float(dtype, std::nextafter(middle, 1e300)), bits + 1);
      EXPECT_EQ(encode_float(dtype, -middle), (bits % 2 == 0 ? bits : bits + 1) | sign);
    }
  }
}

TEST(Convert, OverflowsToInfinityOrWhereThereIsNoneToNan) {
  EXPECT_EQ(encode_float(DType::f16, 65519.99), 0x7bffU);
  EXPECT_EQ(encode_float(DType::f16, 65520.0), 0x7c00U);
  EXPECT_EQ(encode_float(DType::f16, -1e300), 0xfc00U);
  EXPECT_EQ(encode_float(DType::bf16, 3.4e38), 0x7f80U);
  EXPECT_EQ(encode_float(DType::f8e5m2, 61440.0), 0x7cU);
  EXPECT_EQ(encode_float(DType::f8e4m3fn, 464.0), 0x7eU);
  EXPECT_EQ(encode_float(DType::f8e4m3fn, 465.0), 0x7fU);
  EXPECT_EQ(encode_float(DType::f8e4m3fn, -std::numeric_limits<double>::infinity()), 0xffU);
}

TEST(Convert, TakesFloatsAndIntegersWithOneRounding) {
  EXPECT_EQ(encode_float(DType::f32, 0.1), std::bit_cast<uint32_t>(0.1F));
  EXPECT_EQ(encode_float(DType::f64, 0.1), std::bit_cast<uint64_t>(0.1));
  // 2^62 + 2^38 + 1 is just above the middle of two f32. A double in between would lose the 1.
  const int64_t above_middle = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;
  EXPECT_EQ(encode_float(DType::f32, static_cast<long double>(above_middle)),
            std::bit_cast<uint32_t>(static_cast<float>(above_middle)));
}

TEST(Convert, ShortPathsAgreeWithTheLongOnes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    const double half = decode_float(DType::f16, bits);
    const double brain = decode_float(DType::bf16, bits);
    EXPECT_TRUE(std::isnan(half) || f16_to_f32(narrow) == half) << bits;
    EXPECT_TRUE(std::isnan(brain) || bf16_to_f32(narrow) == brain) << bits;
  }
  uint32_t state = 12345;
  for (int i = 0; i < 300000; ++i) {
    state = state * 1664525 + 1013904223;
    const auto value = std::bit_cast<float>(i % 3 == 0 ? state : (state & 0x8fffffff) | 0x30000000);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), encode_float(DType::f16, value)) << value;
      ASSERT_EQ(f32_to_bf16(value), encode_float(DType::bf16, value)) << value;
    }
  }
}

}  // namespace
}  // namespace tenon
