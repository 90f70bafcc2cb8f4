// Folding and splitting of shapes. Needs no device.
#include <gtest/gtest.h>

#include <cstring>

#include "providers/cuda/attention/plan.h"
#include "providers/cuda/elementwise/elementwise.h"
#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/ordering/pieces.h"
#include "providers/cuda/ordering/sorter.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

MapPlan plan_of_two() {
  MapPlan plan;
  plan.count = 2;
  plan.dtypes[0] = plan.dtypes[1] = EP_DTYPE_f32;
  return plan;
}

TEST(CudaPlan, FoldsWhatLiesTogether) {
  const int64_t dims[] = {3, 1, 5, 7};
  const int64_t strides[] = {35, 35, 7, 1};
  const OperandShape operand = {dims, strides, 4};
  const OperandShape both[] = {operand, operand};
  const MapShape shape = folded(plan_of_two(), both);
  EXPECT_EQ(shape.rank, 1);
  EXPECT_EQ(shape.dims[0], 105);
  EXPECT_EQ(shape.strides[0][0], 1);
}

// A transposed result is walked in its own order.
TEST(CudaPlan, WalksInTheResultsOrder) {
  const int64_t dims[] = {5, 7};
  const int64_t columns[] = {1, 5};
  const int64_t rows[] = {7, 1};
  const OperandShape both[] = {{dims, columns, 2}, {dims, rows, 2}};
  const MapShape shape = folded(plan_of_two(), both);
  ASSERT_EQ(shape.rank, 2);
  EXPECT_EQ(shape.dims[0], 7);
  EXPECT_EQ(shape.strides[0][1], 1);
  EXPECT_EQ(shape.strides[1][1], 7);
}

TEST(CudaPlan, ReadsChunksOnlyWhereTheyAreAligned) {
  const int64_t dims[] = {6, 8};
  const int64_t even[] = {8, 1};
  const int64_t gapped[] = {9, 1};
  const OperandShape both[] = {{dims, gapped, 2}, {dims, even, 2}};
  const MapPlan plan = plan_of_two();
  MapOperands operands;
  operands.addresses[0] = 1024;
  operands.addresses[1] = 2048;
  MapArguments map = map_arguments(plan, folded(plan, both), operands);
  EXPECT_EQ(map.chunks, 12U);
  EXPECT_EQ(map.operands[0].vector, 0);
  EXPECT_EQ(map.operands[1].vector, 1);
  operands.addresses[1] = 2052;
  map = map_arguments(plan, folded(plan, both), operands);
  EXPECT_EQ(map.operands[1].vector, 0);
}

TEST(CudaPlan, HalvesTheLongestAxis) {
  MapShape shape;
  shape.rank = 2;
  shape.dims[0] = 4;
  shape.dims[1] = int64_t{1} << 34;
  EXPECT_EQ(axis_to_halve(shape, 4), 1);
  shape.dims[0] = int64_t{1} << 31;
  shape.dims[1] = 8;
  EXPECT_EQ(axis_to_halve(shape, 4), 0);
  shape.dims[0] = 1 << 20;
  EXPECT_EQ(axis_to_halve(shape, 4), -1);
}

AxisSet axis(int64_t count, int64_t stride) {
  AxisSet axes{};
  axes.rank = 1;
  axes.count = axes.dims[0] = count;
  axes.src[0] = stride;
  return axes;
}

TEST(CudaPlan, ReductionsAreCutByTheirShape) {
  constexpr int64_t processors = 100;
  EXPECT_EQ(plan_reduce(axis(100000, 64), axis(64, 1), processors).team, Team::WARP);
  EXPECT_EQ(plan_reduce(axis(100000, 5000), axis(5000, 1), processors).team, Team::BLOCK);
  EXPECT_EQ(plan_reduce(axis(100000, 1), axis(64, 100000), processors).team, Team::SOLO);
  EXPECT_EQ(plan_reduce(axis(100000, 64), axis(64, 1), processors).parts, 1);
  const ReducePlan long_one = plan_reduce(axis(1, 0), axis(1 << 24, 1), processors);
  EXPECT_GT(long_one.parts, 1);
  EXPECT_LE(long_one.parts, 1024);
  EXPECT_EQ(long_one.part_length % map_chunk, 0);
  EXPECT_GE(long_one.parts * long_one.part_length, 1 << 24);
  EXPECT_LT((long_one.parts - 1) * long_one.part_length, 1 << 24);
}

TEST(CudaPlan, SoftmaxOfColumnsTakesAThreadPerRow) {
  EXPECT_EQ(plan_softmax(100, false, false).team, Team::SOLO);
  EXPECT_EQ(plan_softmax(100, true, false).team, Team::WARP);
  EXPECT_EQ(plan_softmax(100, true, true).team, Team::WARP);
  EXPECT_EQ(plan_softmax(100000, false, true).team, Team::BLOCK);
}

TEST(CudaPlan, ShortRowsAreSortedManyAtATime) {
  const SortPlan few = plan_sort(1000, 10, 10, 4, 132);
  EXPECT_EQ(few.way, SortWay::TILES);
  EXPECT_EQ(few.tile, SortTile::SHORT);
  EXPECT_EQ(few.tile_rows, 102);
  EXPECT_EQ(plan_sort(3, 10, 10, 4, 132).tile_rows, 3);
  EXPECT_EQ(plan_sort(1000, 1, 1, 4, 132).tile_rows, 256);  // the greatest row number is one digit
  EXPECT_EQ(plan_sort(1000, 1025, 1025, 4, 132).tile, SortTile::MIDDLE);
  EXPECT_EQ(plan_sort(1000, 2049, 2049, 4, 132).tile, SortTile::LONG);
  EXPECT_EQ(plan_sort(1000, 4096, 4096, 4, 132).tile_rows, 1);
  EXPECT_EQ(plan_sort(1000, 4096, 4096, 8, 132).way, SortWay::DIGITS);
}

TEST(CudaPlan, LongRowsAreSortedInPieces) {
  EXPECT_EQ(plan_sort(1, 1 << 20, 64, 4, 132).way, SortWay::LEVELS);
  EXPECT_EQ(plan_sort(1, 1 << 20, 1025, 4, 132).way, SortWay::DIGITS);
  for (const int64_t length : {4097, 1 << 20, 100000007}) {
    for (const int64_t rows : {1, 7, 5000}) {
      const SortPlan plan = plan_sort(rows, length, length, 4, 132);
      EXPECT_EQ(plan.piece_length % length_of(plan.tile), 0);
      EXPECT_GE(plan.pieces * plan.piece_length, length);
      EXPECT_LT((plan.pieces - 1) * plan.piece_length, length);
      const PieceArguments pieces = pieces_of(length, 132);
      EXPECT_GE(pieces.number * pieces.length, length);
      EXPECT_LT((pieces.number - 1) * pieces.length, length);
    }
  }
}

// Rows are numbered in row-major order, and axes are merged if the rows of all operands continue.
TEST(CudaPlan, RowsOfSeveralOperandsAreNumberedAlike) {
  const int64_t dims[] = {3, 1, 5, 7};
  const int64_t dense[] = {35, 35, 7, 1};
  const int64_t turned[] = {5, 15, 1, 15};
  const OperandShape src = {dims, dense, 4};
  const OperandShape dst = {dims, turned, 4};
  const OperandShape alike[] = {src, src, {}};
  const RowSet rows = rows_along(alike, 3);
  EXPECT_EQ(rows.rank, 1);
  EXPECT_EQ(rows.count, 15);
  EXPECT_EQ(rows.strides[1][0], 7);
  const OperandShape both[] = {src, dst, {}};
  const RowSet apart = rows_along(both, 2);
  ASSERT_EQ(apart.rank, 2);
  EXPECT_EQ(apart.count, 21);
  EXPECT_EQ(apart.strides[0][1], 1);
  EXPECT_EQ(apart.strides[1][0], 5);
}

TEST(CudaPlan, ScalarsAreRoundedToTheirType) {
  const ep_scalar tenth = {EP_DTYPE_f16, 0, {.f64 = 0.1}};
  const uint64_t bits = class_bits(tenth, EP_DTYPE_f16);
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  EXPECT_EQ(value, 0.0999755859375F);
  const ep_scalar minus = {EP_DTYPE_i32, 0, {.i64 = -5}};
  EXPECT_EQ(class_bits(minus, EP_DTYPE_i32), static_cast<uint64_t>(-5));
  EXPECT_EQ(element_bits(minus, EP_DTYPE_i16), 0xfffbU);
}

constexpr AttentionDevice h100 = {90, 132, 227 << 10};

TEST(CudaPlan, AttentionTakesTheKernelOfItsRowsAndDevice) {
  const auto kernel = [](int64_t width, int64_t columns, int32_t dtype, const AttentionDevice& device) {
    return plan_attention({1, 1, 1, 100, 100, width, columns}, dtype, device).kernel;
  };
  EXPECT_EQ(kernel(64, 64, EP_DTYPE_f32, h100), AttentionKernel::WIDE_64);
  EXPECT_EQ(kernel(64, 64, EP_DTYPE_f16, h100), AttentionKernel::NARROW_64);
  EXPECT_EQ(kernel(64, 65, EP_DTYPE_f16, h100), AttentionKernel::NARROW_128_SOME);
  EXPECT_EQ(plan_attention({2, 32, 8, 1024, 100, 128, 128}, EP_DTYPE_bf16, h100).kernel, AttentionKernel::NARROW_128);
  EXPECT_EQ(kernel(129, 8, EP_DTYPE_bf16, h100), AttentionKernel::NARROW_256);
  EXPECT_EQ(kernel(257, 8, EP_DTYPE_bf16, h100), AttentionKernel::PLAIN);
  EXPECT_EQ(kernel(8, 8, EP_DTYPE_f64, h100), AttentionKernel::PLAIN);
  const AttentionDevice old = {75, 40, 64 << 10};
  EXPECT_EQ(kernel(128, 128, EP_DTYPE_f16, old), AttentionKernel::NARROW_128_SOME);
  EXPECT_EQ(kernel(128, 128, EP_DTYPE_bf16, old), AttentionKernel::WIDE_128);
  EXPECT_EQ(kernel(256, 256, EP_DTYPE_f32, old), AttentionKernel::PLAIN);
}

TEST(CudaPlan, AttentionOfFewQueriesSplitsItsKeys) {
  const AttentionPlan many = plan_attention({1, 32, 8, 4096, 4096, 128, 128}, EP_DTYPE_bf16, h100);
  EXPECT_EQ(many.fold, 1);
  EXPECT_EQ(many.splits, 1);
  EXPECT_EQ(many.units, 32);
  EXPECT_GE(many.row_blocks, 32);
  const AttentionPlan decode = plan_attention({1, 32, 8, 1, 4096, 128, 128}, EP_DTYPE_bf16, h100);
  EXPECT_EQ(decode.fold, 4);
  EXPECT_EQ(decode.units, 8);
  EXPECT_EQ(decode.unit_rows, 4);
  EXPECT_GT(decode.splits, 1);
  EXPECT_EQ(decode.split_keys % 64, 0);
  EXPECT_GE(decode.splits * decode.split_keys, 4096);
  EXPECT_LT((decode.splits - 1) * decode.split_keys, 4096);
  EXPECT_EQ(parts_bytes(decode, 128), static_cast<uint64_t>(32 * decode.splits * 132 * 4));
  EXPECT_EQ(decode.kernel, AttentionKernel::NARROW_128_FEW);
  EXPECT_EQ(plan_attention({1, 4, 1, 5, 64, 64, 64}, EP_DTYPE_f32, h100).kernel, AttentionKernel::WIDE_64);
  EXPECT_EQ(plan_attention({1, 4, 1, 4, 64, 64, 64}, EP_DTYPE_f32, h100).kernel, AttentionKernel::WIDE_64_FEW);
  EXPECT_EQ(parts_bytes(many, 128), 0U);
}

ep_primitive_desc unary(int32_t op, int32_t to, int32_t from) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.attributes.unary.op = op;
  desc.operand_count = 2;
  for (int i = 0; i < 2; ++i) {
    desc.operands[i].role = i == 0 ? EP_ROLE_DST : EP_ROLE_SRC;
    desc.operands[i].dtype = i == 0 ? to : from;
    desc.operands[i].rank = 1;
    desc.operands[i].dims[0] = 8;
    desc.operands[i].strides[0] = 1;
  }
  return desc;
}

TEST(CudaPlan, RefusalsNameTheirReason) {
  EXPECT_STREQ(plan_elementwise(unary(EP_UNARY_exp, EP_DTYPE_i32, EP_DTYPE_i32)).refusal.text(),
               "unary row 9 (exp) is not defined on i32");
  EXPECT_STREQ(plan_elementwise(unary(EP_UNARY_exp, EP_DTYPE_f32, EP_DTYPE_f16)).refusal.text(),
               "the destination is f32, not f16");
  EXPECT_STREQ(plan_elementwise(unary(EP_UNARY_relu, EP_DTYPE_f8e5m2, EP_DTYPE_f8e5m2)).refusal.text(),
               "no kernel computes with f8e5m2");
  EXPECT_STREQ(plan_elementwise(unary(EP_UNARY_relu, EP_DTYPE_i4, EP_DTYPE_i4)).refusal.text(), "i4 is packed");
}

}  // namespace
}  // namespace tenon::provider::cuda
