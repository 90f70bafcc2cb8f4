#include "primitives/table/table.h"

#include <gtest/gtest.h>

namespace tenon::table {
namespace {

TEST(Table, KindsAreFoundByIdAndName) {
  for (const KindRow& row : kinds()) {
    EXPECT_EQ(kind_row(row.id), &row);
    EXPECT_EQ(kind_row(row.name), &row);
  }
  EXPECT_EQ(kind_row(EP_PRIMITIVE_matmul)->name, "matmul");
  EXPECT_EQ(kind_row("softmax")->attribute_size, sizeof(ep_softmax_attributes));
  EXPECT_EQ(kind_row("unary")->alias, EP_ROLE_SRC);
  EXPECT_EQ(kind_row("matmul")->alias, 0);
  EXPECT_EQ(kind_row(0), nullptr);
  EXPECT_EQ(kind_row(0x10000), nullptr);
  EXPECT_EQ(kind_name(47), "kind 47");
}

TEST(Table, ScalarRowsAreFoundByIdAndName) {
  for (const ScalarRow& row : unary_rows()) EXPECT_EQ(unary_row(row.id), &row);
  for (const ScalarRow& row : binary_rows()) EXPECT_EQ(binary_row(row.id), &row);
  for (const ScalarRow& row : ternary_rows()) EXPECT_EQ(ternary_row(row.id), &row);
  for (const ReduceRow& row : reduce_rows()) EXPECT_EQ(reduce_row(row.id), &row);
  EXPECT_EQ(scalar_row(1, "relu")->id, EP_UNARY_relu);
  EXPECT_EQ(scalar_row(2, "relu"), nullptr);
  EXPECT_EQ(unary_row(-1), nullptr);
  EXPECT_EQ(unary_row(100000), nullptr);
}

TEST(Table, ParametersAreReadOffTheExpression) {
  EXPECT_EQ(scalar_row(1, "relu")->parameters, 0);
  EXPECT_EQ(scalar_row(1, "leaky_relu")->parameters, 1);
  EXPECT_EQ(scalar_row(1, "selu")->parameters, 2);
  EXPECT_EQ(scalar_row(1, "hard_sigmoid")->parameters, 2);
  EXPECT_EQ(scalar_row(1, "hard_swish")->parameters, 0);
}

TEST(Table, DomainsHoldTheirTypes) {
  EXPECT_TRUE(in_domain(Domain::FLOAT, DType::f8e5m2));
  EXPECT_FALSE(in_domain(Domain::FLOAT, DType::i32));
  EXPECT_FALSE(in_domain(Domain::SIGNED, DType::u8));
  EXPECT_TRUE(in_domain(Domain::NUMERIC, DType::u4));
  EXPECT_FALSE(in_domain(Domain::NUMERIC, DType::boolean));
  EXPECT_FALSE(in_domain(Domain::FLOAT, DType::f8e8m0));
  EXPECT_FALSE(in_domain(Domain::ANY, DType::u2));
  EXPECT_TRUE(in_domain(Domain::BITS, DType::boolean));
  EXPECT_FALSE(in_domain(Domain::BITS, DType::f32));
  EXPECT_FALSE(in_domain(Domain::ANY, DType::none));
  EXPECT_EQ(result_dtype(*scalar_row(2, "lt"), DType::f32), DType::boolean);
  EXPECT_EQ(result_dtype(*scalar_row(2, "add"), DType::f32), DType::f32);
}

TEST(Table, RolesReadBack) {
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC_B, EP_ROLE_INV_STD, EP_ROLE_DST_INDICES, EP_ROLE_EPILOGUE_0 + 3,
                       EP_ROLE_WEIGHT_ZERO_POINT, EP_ROLE_GRADIENT, EP_ROLE_SHIFT_GRADIENT, EP_ROLE_DST_COUNT,
                       EP_ROLE_DST_COUNTS, EP_ROLE_SRC_0 + 15, EP_ROLE_DST_0 + 7, EP_ROLE_LENGTHS,
                       EP_ROLE_RECURRENT_WEIGHT, EP_ROLE_DST_CELL, EP_ROLE_DST_LOG}) {
    EXPECT_EQ(role_from_name(role_name(role)), role);
  }
  EXPECT_EQ(role_name(EP_ROLE_EPILOGUE_0 + 3), "epilogue_3");
  EXPECT_EQ(role_name(EP_ROLE_EPILOGUE_0 + EP_MAX_EPILOGUES - 1 + 4096), "");
  EXPECT_EQ(role_name(0), "");
  EXPECT_TRUE(is_output(EP_PRIMITIVE_split, EP_ROLE_DST_0 + 2));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_layer_norm, EP_ROLE_MEAN));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_batch_norm_training, EP_ROLE_INV_STD));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_layer_norm_backward, EP_ROLE_SCALE_GRADIENT));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_unique, EP_ROLE_DST_INVERSE));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_recurrent, EP_ROLE_DST_HIDDEN));
  EXPECT_FALSE(is_output(EP_PRIMITIVE_recurrent, EP_ROLE_HIDDEN));
  EXPECT_TRUE(is_output(EP_PRIMITIVE_linear_algebra, EP_ROLE_DST_VECTORS_H));
  EXPECT_FALSE(is_output(EP_PRIMITIVE_layer_norm_backward, EP_ROLE_MEAN));
  EXPECT_FALSE(is_output(EP_PRIMITIVE_batch_norm, EP_ROLE_MEAN));
}

}  // namespace
}  // namespace tenon::table
