// A matmul as it is given to cuBLASLt. Needs no device.
#include <gtest/gtest.h>

#include <vector>

#include "providers/cuda/matmul/problem.h"

namespace tenon::provider::cuda {
namespace {

ep_operand_desc matrix(int32_t role, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  ep_operand_desc operand{};
  operand.role = role;
  operand.dtype = EP_DTYPE_f32;
  operand.rank = static_cast<int32_t>(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    operand.dims[axis] = dims[axis];
    operand.strides[axis] = strides[axis];
  }
  return operand;
}

ep_primitive_desc matmul(const std::vector<ep_operand_desc>& operands) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_matmul;
  desc.operand_count = static_cast<uint32_t>(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) desc.operands[i] = operands[i];
  return desc;
}

LtProblem problem_of(const ep_primitive_desc& desc) {
  LtProblem problem;
  const Refusal refusal = make_problem(desc, {}, &problem);
  EXPECT_FALSE(refusal) << refusal.text();
  return problem;
}

TEST(LtProblem, RowsAreColumns) {
  const LtProblem problem =
      problem_of(matmul({matrix(EP_ROLE_DST, {5, 7}, {7, 1}), matrix(EP_ROLE_SRC, {5, 11}, {11, 1}),
                         matrix(EP_ROLE_SRC_B, {11, 7}, {1, 11})}));
  EXPECT_EQ(problem.matrices[LT_D].rows, 7);
  EXPECT_EQ(problem.matrices[LT_D].columns, 5);
  EXPECT_EQ(problem.matrices[LT_D].ld, 7);
  EXPECT_FALSE(problem.matrices[LT_SRC].transposed);
  EXPECT_EQ(problem.matrices[LT_SRC].ld, 11);
  EXPECT_TRUE(problem.matrices[LT_SRC_B].transposed);
  EXPECT_EQ(problem.matrices[LT_SRC_B].rows, 11);
  EXPECT_EQ(problem.matrices[LT_SRC_B].columns, 7);
}

TEST(LtProblem, ABatchWithOneWeightIsMoreRows) {
  const LtProblem problem =
      problem_of(matmul({matrix(EP_ROLE_DST, {3, 5, 7}, {35, 7, 1}), matrix(EP_ROLE_SRC, {3, 5, 11}, {55, 11, 1}),
                         matrix(EP_ROLE_SRC_B, {3, 11, 7}, {0, 7, 1})}));
  EXPECT_EQ(problem.batch, 1);
  EXPECT_EQ(problem.matrices[LT_D].columns, 15);
  EXPECT_EQ(problem.matrices[LT_SRC].columns, 15);
}

TEST(LtProblem, CrossedBatchesAreSeveralCalls) {
  const LtProblem problem = problem_of(
      matmul({matrix(EP_ROLE_DST, {3, 4, 5, 7}, {140, 35, 7, 1}), matrix(EP_ROLE_SRC, {3, 4, 5, 11}, {55, 0, 11, 1}),
              matrix(EP_ROLE_SRC_B, {3, 4, 11, 7}, {0, 77, 7, 1})}));
  EXPECT_EQ(problem.batch, 4);
  EXPECT_EQ(problem.matrices[LT_SRC].batch_stride, 0);
  EXPECT_EQ(problem.matrices[LT_SRC_B].batch_stride, 77);
  EXPECT_EQ(problem.outer_count(), 3);
  EXPECT_EQ(problem.outer_strides[LT_D][0], 140);
}

TEST(LtProblem, BiasSumAndReluAreOneCall) {
  ep_primitive_desc desc = matmul({matrix(EP_ROLE_DST, {5, 7}, {7, 1}), matrix(EP_ROLE_SRC, {5, 11}, {11, 1}),
                                   matrix(EP_ROLE_SRC_B, {11, 7}, {7, 1}), matrix(EP_ROLE_BIAS, {5, 7}, {0, 1}),
                                   matrix(EP_ROLE_EPILOGUE_0, {5, 7}, {7, 1})});
  desc.epilogue_count = 3;
  desc.epilogues[0] = {2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0};
  desc.epilogues[1] = {1, EP_UNARY_relu, 0, 0};
  desc.epilogues[2] = {1, EP_UNARY_exp, 0, 0};
  LtProblem problem = problem_of(desc);
  EXPECT_EQ(problem.bias, 3);
  EXPECT_EQ(problem.operands[LT_C], 4);
  EXPECT_TRUE(problem.relu);
  EXPECT_EQ(problem.first_epilogue, 2U);
  ASSERT_FALSE(make_problem(desc, {false, false, false}, &problem));
  EXPECT_EQ(problem.tail_bias, 3);
  EXPECT_EQ(problem.first_epilogue, 0U);
}

TEST(LtProblem, AFullBiasIsTheMatrixC) {
  const LtProblem problem =
      problem_of(matmul({matrix(EP_ROLE_DST, {5, 7}, {7, 1}), matrix(EP_ROLE_SRC, {5, 11}, {11, 1}),
                         matrix(EP_ROLE_SRC_B, {11, 7}, {7, 1}), matrix(EP_ROLE_BIAS, {5, 7}, {9, 1})}));
  EXPECT_EQ(problem.bias, -1);
  EXPECT_EQ(problem.operands[LT_C], 3);
  EXPECT_EQ(problem.matrices[LT_C].ld, 9);
}

TEST(LtProblem, RefusesStridesThatNoMatrixHas) {
  LtProblem problem;
  const Refusal refusal =
      make_problem(matmul({matrix(EP_ROLE_DST, {5, 7}, {7, 1}), matrix(EP_ROLE_SRC, {5, 11}, {22, 2}),
                           matrix(EP_ROLE_SRC_B, {11, 7}, {7, 1})}),
                   {}, &problem);
  EXPECT_STREQ(refusal.text(), "operand 1 has strides 22 and 2 in its matrix, neither is 1");
}

}  // namespace
}  // namespace tenon::provider::cuda
