// Created primitives: which descriptors share one.
#include "core/primitive/primitive_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "core/primitive/primitive.h"
#include "core/tensor/device.h"
#include "primitives/status/error.h"

namespace tenon {
namespace {

// Makes primitive_support of the cpu grant other flags for a while. Only the thread of the test calls it.
class Granting {
 public:
  explicit Granting(uint64_t flags) {
    granted_ = flags;
    real_ = std::exchange(
        state()->ops.primitive_support,
        [](ep_device* device, const ep_primitive_desc* desc, ep_support_info* info, ep_error** error) -> ep_status {
          const ep_status status = real_(device, desc, info, error);
          info->flags &= granted_;
          return status;
        });
  }
  ~Granting() { state()->ops.primitive_support = real_; }
  Granting(const Granting&) = delete;
  Granting& operator=(const Granting&) = delete;

  static DeviceState* state() { return Device("cpu").state(); }

 private:
  static inline decltype(ep_device_ops::primitive_support) real_ = nullptr;
  static inline uint64_t granted_ = 0;
};

// The primitive of dst = neg(src), where src has the given dims and strides.
const Primitive* primitive_of(std::array<int64_t, 2> dims, std::array<int64_t, 2> strides) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.operand_count = 2;
  desc.operands[0] = {EP_ROLE_DST, EP_DTYPE_f32, 2, 0, 0, {dims[0], dims[1]}, {1000, 1}};
  desc.operands[1] = {EP_ROLE_SRC, EP_DTYPE_f32, 2, 0, 0, {dims[0], dims[1]}, {strides[0], strides[1]}};
  desc.attributes.unary.op = EP_UNARY_neg;
  Resolved resolved = value_or_throw(resolve_primitive(Granting::state(), desc, nullptr, 0));
  resolved.primitive->release(1);  // the cache keeps it
  return resolved.primitive;
}

TEST(ResolvePrimitive, OneServesAllLengthsAndStridesWhereTheDeviceGrantsIt) {
  const Granting all(EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES);
  const Primitive* primitive = primitive_of({4, 6}, {20, 2});
  EXPECT_EQ(primitive_of({5, 7}, {20, 2}), primitive);
  EXPECT_EQ(primitive_of({5, 7}, {40, 3}), primitive);
  EXPECT_NE(primitive_of({5, 7}, {40, 1}), primitive) << "a stride of 1 stays";
  EXPECT_NE(primitive_of({5, 7}, {0, 3}), primitive) << "a stride of 0 stays";
}

TEST(ResolvePrimitive, StridesStayWhereTheDeviceGrantsLengthsAlone) {
  const Granting dims(EP_SUPPORT_FLAG_ANY_DIMS);
  const Primitive* primitive = primitive_of({4, 6}, {20, 2});
  EXPECT_EQ(primitive_of({5, 7}, {20, 2}), primitive);
  EXPECT_NE(primitive_of({4, 6}, {40, 2}), primitive);
}

TEST(ResolvePrimitive, EachShapeHasItsOwnWhereTheDeviceGrantsNothing) {
  const Granting none(EP_SUPPORT_FLAG_ANY_STRIDES);
  const Primitive* primitive = primitive_of({4, 6}, {20, 2});
  EXPECT_EQ(primitive_of({4, 6}, {20, 2}), primitive);
  EXPECT_NE(primitive_of({5, 7}, {20, 2}), primitive);
  EXPECT_NE(primitive_of({4, 6}, {20, 3}), primitive);
}

}  // namespace
}  // namespace tenon
