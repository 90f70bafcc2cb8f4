// Primitives that meet a demand of precision above the device's statement.
#include "providers/opencl/kernels/demand.h"

#include <gtest/gtest.h>

namespace tenon::provider::opencl {
namespace {

ep_primitive_desc unary(int32_t op, int32_t dtype, int32_t precision) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.operand_count = 2;
  desc.precision = precision;
  desc.attributes.unary.op = op;
  for (uint32_t i = 0; i < 2; ++i) desc.operands[i].dtype = dtype;
  return desc;
}

PhysicalDevice device(bool keeps_denormals) {
  PhysicalDevice made;
  made.keeps_denormals = keeps_denormals;
  return made;
}

TEST(Accuracy, StatesF64RelaxedAndWhatTheDeviceFlushes) {
  ep_device_info info{};
  fill_info(device(true), &info);
  EXPECT_EQ(info.portable_dtypes, uint64_t{1} << EP_DTYPE_f64);
  EXPECT_EQ(info.relaxed_dtypes, 0u);
  EXPECT_EQ(info.flushed_dtypes, 0u);
  ep_device_info flushing{};
  fill_info(device(false), &flushing);
  EXPECT_EQ(flushing.flushed_dtypes, uint64_t{1} << EP_DTYPE_f32 | uint64_t{1} << EP_DTYPE_bf16);
}

TEST(Demand, OfF64IsKeptWhereNoFunctionOfTheDeviceIsCalled) {
  const PhysicalDevice one = device(true);
  for (int32_t op : {EP_UNARY_exp, EP_UNARY_sin, EP_UNARY_sinh, EP_UNARY_sigmoid, EP_UNARY_sqrt, EP_UNARY_relu}) {
    EXPECT_TRUE(keeps_demand(one, unary(op, EP_DTYPE_f64, EP_PRECISION_FULL))) << op;
  }
  for (int32_t op : {EP_UNARY_tan, EP_UNARY_atan, EP_UNARY_tanh, EP_UNARY_atanh, EP_UNARY_erf, EP_UNARY_gelu,
                     EP_UNARY_gelu_tanh, EP_UNARY_mish}) {
    EXPECT_FALSE(keeps_demand(one, unary(op, EP_DTYPE_f64, EP_PRECISION_FULL))) << op;
    EXPECT_TRUE(keeps_demand(one, unary(op, EP_DTYPE_f64, EP_PRECISION_PORTABLE))) << op;
    EXPECT_FALSE(keeps_demand(one, unary(op, EP_DTYPE_f64, EP_PRECISION_DEFAULT))) << "none was made";
  }
  ep_primitive_desc product = unary(0, EP_DTYPE_f64, EP_PRECISION_FULL);
  product.kind = EP_PRIMITIVE_matmul;
  EXPECT_TRUE(keeps_demand(one, product));
  product.epilogue_count = 1;
  product.epilogues[0] = {1, EP_UNARY_gelu, 0, 4};
  EXPECT_FALSE(keeps_demand(one, product));
}

TEST(Demand, OfTierFullIsNotKeptWhereDenormalsVanish) {
  EXPECT_FALSE(keeps_demand(device(false), unary(EP_UNARY_relu, EP_DTYPE_f32, EP_PRECISION_FULL)));
  EXPECT_TRUE(keeps_demand(device(false), unary(EP_UNARY_relu, EP_DTYPE_f32, EP_PRECISION_PORTABLE)));
  EXPECT_TRUE(keeps_demand(device(false), unary(EP_UNARY_relu, EP_DTYPE_f64, EP_PRECISION_FULL)));
}

}  // namespace
}  // namespace tenon::provider::opencl
