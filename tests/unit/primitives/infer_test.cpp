#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "primitives/infer/assemble-inl.h"
#include "primitives/infer/assemble.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/broadcast.h"
#include "primitives/infer/convolution.h"
#include "primitives/infer/matmul.h"
#include "primitives/infer/reduce.h"
#include "primitives/infer/types.h"
#include "primitives/infer/view-inl.h"
#include "primitives/infer/view.h"

namespace tenon::infer {
namespace {

constexpr int64_t huge = int64_t{1} << 40;
constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::lowest();

template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "no error" : result.status().message();
}

std::span<const int64_t> list(const Dims& dims) { return {dims.data(), dims.size()}; }

View contiguous(const Dims& dims) { return {dims, contiguous_strides(dims), 0}; }

TEST(Axis, NegativeOnesCountFromTheEnd) {
  EXPECT_EQ(axis("softmax", -1, 3).value(), 2);
  EXPECT_EQ(axis("softmax", 0, 0).value(), 0);
  EXPECT_EQ(axis("softmax", -1, 0).value(), 0);
  EXPECT_EQ(error_of(axis("softmax", 3, 2)), "softmax: axis 3 is out of range for rank 2 (expected -2 to 1).");
  EXPECT_EQ(axis_mask("sum", list({0, -1}), 4).value(), 0b1001U);
  EXPECT_EQ(axis_mask("sum", {}, 3).value(), 0b111U);
  EXPECT_EQ(error_of(axis_mask("sum", list({1, -2}), 3)), "sum: axis -2 is named twice for rank 3.");
  EXPECT_EQ(axis_mask("sum", list({0}), 0).value(), 0U);
  EXPECT_EQ(axis_mask("sum", {}, 0).value(), 0U);
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast("add", {2, 1, 4}, {3, 1}).value(), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast("add", {}, {3}).value(), Dims{3});
  EXPECT_EQ(broadcast("add", {0}, {1}).value(), Dims{0});
  EXPECT_EQ(broadcast("where", {2, 1}, {3}, {1, 1, 1}).value(), (Dims{1, 2, 3}));
  EXPECT_EQ(error_of(broadcast("add", {2, 3}, {4})),
            "add: shapes [2, 3] and [4] do not broadcast: aligned at the last axis, dims must be equal or 1.");
  EXPECT_FALSE(broadcast("add", {0}, {2}).ok());
  EXPECT_FALSE(broadcast("add", {huge, 1}, {1, huge}).ok());
}

TEST(Broadcast, StridesAreZeroWhereItRepeats) {
  EXPECT_EQ(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}), (Dims{0, 1, 0}));
  EXPECT_EQ(broadcast_strides({3, 1}, {1, 1}, {3, 1}), (Dims{1, 1}));
  EXPECT_TRUE(broadcasts_to({1, 4}, {3, 4}));
  EXPECT_FALSE(broadcasts_to({3, 4}, {1, 4}));
  EXPECT_FALSE(broadcasts_to({1, 1, 4}, {3, 4}));
}

TEST(Reduce, DropsOrKeepsItsAxes) {
  EXPECT_EQ(reduce({2, 3, 4}, 0b101, true), (Dims{1, 3, 1}));
  EXPECT_EQ(reduce({2, 3, 4}, 0b101, false), Dims{3});
  EXPECT_EQ(reduced_count({2, 3, 4}, 0b101), 8);
  EXPECT_TRUE(require_elements("max", {0, 3}, 0b10).ok());
  EXPECT_FALSE(require_elements("max", {0, 3}, 0b01).ok());
  EXPECT_TRUE(require_elements("max", {0, 0}, 0b01).ok());  // the result has no elements either
}

TEST(Matmul, FollowsPyTorch) {
  EXPECT_EQ(matmul("matmul", {5}, {5})->dims, Dims{});
  EXPECT_EQ(matmul("matmul", {5}, {5})->full, (Dims{1, 1}));
  EXPECT_EQ(matmul("matmul", {3, 5}, {5})->dims, Dims{3});
  EXPECT_EQ(matmul("matmul", {5}, {7, 5, 2})->dims, (Dims{7, 2}));
  EXPECT_EQ(matmul("matmul", {4, 1, 3, 5}, {6, 5, 2})->dims, (Dims{4, 6, 3, 2}));
  EXPECT_EQ(error_of(matmul("matmul", {10, 25}, {256, 4})), "matmul: columns of a (25) do not match rows of b (256).");
  EXPECT_FALSE(matmul("matmul", {}, {5}).ok());
  EXPECT_NE(error_of(matmul("matmul", {2, 3, 5}, {4, 5, 2})).find("in the batch axes of a [2, 3, 5]"),
            std::string::npos);
  EXPECT_FALSE(matmul("matmul", {huge, 1}, {1, huge}).ok());
}

TEST(Matmul, OperandsAreReadAsTheFullShape) {
  const MatmulShape shape = matmul("matmul", {4, 1, 3, 5}, {6, 5, 2}).value();
  const View left = matmul_left(shape, contiguous({4, 1, 3, 5}));
  EXPECT_EQ(left.dims, (Dims{4, 6, 3, 5}));
  EXPECT_EQ(left.strides, (Dims{15, 0, 5, 1}));
  const View right = matmul_right(shape, contiguous({6, 5, 2}));
  EXPECT_EQ(right.dims, (Dims{4, 6, 5, 2}));
  EXPECT_EQ(right.strides, (Dims{0, 10, 2, 1}));
  const MatmulShape vector = matmul("matmul", {7, 3, 5}, {5}).value();
  EXPECT_EQ(matmul_right(vector, contiguous({5})).dims, (Dims{7, 5, 1}));
  const MatmulShape row = matmul("matmul", {5}, {5, 2}).value();
  EXPECT_EQ(matmul_left(row, contiguous({5})).strides, (Dims{5, 1}));
  EXPECT_EQ(matmul_left(row, {{5}, {3}, 0}).strides, (Dims{15, 3}));
  EXPECT_EQ(matmul_left(row, {{5}, {0}, 0}).strides, (Dims{5, 0}));
  EXPECT_EQ(linear("linear", {2, 3, 5}, {7, 5}, nullptr).value(), (Dims{2, 3, 7}));
  const Dims bias = {6};
  EXPECT_EQ(error_of(linear("linear", {2, 5}, {7, 5}, &bias)),
            "linear: the bias must have shape [7], but its shape is [6].");
  EXPECT_EQ(error_of(linear("linear", {2, 5}, {1, 7, 5}, nullptr)),
            "linear: the weight must have rank 2, but its shape is [1, 7, 5].");
  EXPECT_EQ(error_of(linear("linear", {}, {7, 5}, nullptr)),
            "linear: the last axis of x [] does not match the columns of the weight (5).");
}

ep_convolution_attributes window(int32_t rank, int64_t groups, int64_t stride, int64_t dilation, int64_t low,
                                 int64_t high) {
  ep_convolution_attributes attributes = {};
  attributes.spatial_rank = rank;
  attributes.groups = groups;
  for (int32_t i = 0; i < std::min(rank, 3); ++i) {
    attributes.stride[i] = stride;
    attributes.dilation[i] = dilation;
    attributes.pad_low[i] = low;
    attributes.pad_high[i] = high;
  }
  return attributes;
}

TEST(Convolution, GivesTheLengthsOfPyTorch) {
  EXPECT_EQ(convolution("conv2d", {1, 3, 224, 224}, {64, 3, 7, 7}, nullptr, window(2, 1, 2, 1, 3, 3)).value(),
            (Dims{1, 64, 112, 112}));
  EXPECT_EQ(convolution("conv1d", {2, 4, 10}, {6, 2, 3}, nullptr, window(1, 2, 1, 2, 0, 1)).value(), (Dims{2, 6, 7}));
  ep_convolution_attributes back = window(2, 1, 2, 1, 1, 1);
  back.transposed = 1;
  EXPECT_EQ(convolution("conv_transpose2d", {1, 4, 7, 7}, {4, 6, 3, 3}, nullptr, back, list({1, 0})).value(),
            (Dims{1, 6, 14, 13}));
  const Dims bias = {6};
  back.groups = 2;
  EXPECT_EQ(convolution("conv_transpose2d", {1, 4, 7, 7}, {4, 3, 3, 3}, &bias, back).value(), (Dims{1, 6, 13, 13}));
}

TEST(Convolution, ChecksWhatATransposedOneAdds) {
  ep_convolution_attributes back = window(1, 1, 2, 3, 1, 1);
  back.transposed = 1;
  const auto error = [&](const Dims& weight, std::span<const int64_t> extra) {
    return error_of(convolution("conv_transpose1d", {1, 4, 7}, weight, nullptr, back, extra));
  };
  EXPECT_EQ(error({4, 6, 3}, list({2})), "no error");  // less than the dilation
  EXPECT_EQ(error({4, 6, 3}, list({3})),
            "conv_transpose1d: output padding 3 of spatial axis 0 must be less than stride (2) or dilation (3).");
  EXPECT_NE(error({4, 6, 3}, list({-1})).find("output padding -1 of spatial axis 0"), std::string::npos);
  EXPECT_NE(error({4, 6, 3}, list({0, 0})).find("has 2 numbers"), std::string::npos);
  EXPECT_NE(error({5, 6, 3}, {}).find("do not match the first axis of the weight (5)"), std::string::npos);
  ep_convolution_attributes cut = window(1, 1, 1, 1, 1, 1);
  cut.transposed = 1;
  EXPECT_EQ(convolution("conv_transpose1d", {1, 4, 3}, {4, 6, 1}, nullptr, cut).value(), (Dims{1, 6, 1}));
  EXPECT_NE(error_of(convolution("conv_transpose1d", {1, 4, 2}, {4, 6, 1}, nullptr, cut)).find("would become 0 long"),
            std::string::npos);
}

TEST(Convolution, SaysWhatDoesNotFit) {
  const auto error = [](const Dims& src, const Dims& weight, const ep_convolution_attributes& attributes) {
    return error_of(convolution("conv2d", src, weight, nullptr, attributes));
  };
  EXPECT_EQ(error({1, 3, 8, 8}, {4, 2, 3, 3}, window(2, 1, 1, 1, 0, 0)),
            "conv2d: channels of the input per group (3) do not match those of the weight (2).");
  EXPECT_EQ(error({1, 3, 2, 8}, {4, 3, 3, 3}, window(2, 1, 1, 1, 0, 0)),
            "conv2d: the kernel (3 with dilation) is longer than spatial axis 0 with its padding (2).");
  EXPECT_NE(error({1, 3, 8}, {4, 3, 3}, window(2, 1, 1, 1, 0, 0)).find("must have rank 4"), std::string::npos);
  EXPECT_NE(error({1, 3, 8, 8}, {4, 3, 3, 3}, window(2, 2, 1, 1, 0, 0)).find("not a multiple of groups (2)"),
            std::string::npos);
  EXPECT_NE(error({1, 4, 8, 8}, {5, 2, 3, 3}, window(2, 2, 1, 1, 0, 0)).find("output channels (5)"), std::string::npos);
  EXPECT_NE(error({1, 3, 8, 8}, {4, 3, 3, 3}, window(2, 0, 1, 1, 0, 0)).find("groups is 0"), std::string::npos);
  EXPECT_NE(error({1, 3, 8, 8}, {4, 3, 0, 3}, window(2, 1, 1, 1, 0, 0)).find("kernel length 0"), std::string::npos);
  EXPECT_NE(error({1, 3, 8, 8, 8, 8}, {4, 3, 3, 3, 3, 3}, window(4, 1, 1, 1, 0, 0)).find("spatial rank 4"),
            std::string::npos);
  EXPECT_NE(error_of(convolution("conv1d", {1, 3, 8}, {4, 3, 3}, nullptr, window(1, 1, 1, 1, 0, 0), list({0})))
                .find("is for transposed convolutions"),
            std::string::npos);
  EXPECT_NE(error({1, 3, 8, 8}, {4, 3, 3, 3}, window(2, 1, 0, 1, 0, 0)).find("stride 0"), std::string::npos);
  EXPECT_NE(error({1, 3, most, 8}, {4, 3, 3, 3}, window(2, 1, 1, 1, 1, 1)).find("too long"), std::string::npos);
  EXPECT_NE(
      error({huge, 3, huge, huge}, {4, 3, 3, 3}, window(2, 1, 1, 1, 1, 1)).find("more than 9223372036854775807 bytes"),
      std::string::npos);
  const Dims bias = {5};
  EXPECT_NE(error_of(convolution("conv2d", {1, 3, 8, 8}, {4, 3, 3, 3}, &bias, window(2, 1, 1, 1, 0, 0)))
                .find("bias must have shape [4]"),
            std::string::npos);
}

TEST(Convolution, TakesAWindowUpToItsLimitsAndNotOneStepFurther) {
  const auto error = [](int64_t stride, int64_t dilation, int64_t low, int64_t high) {
    return error_of(convolution("conv1d", {1, 3, 8}, {4, 3, 1}, nullptr, window(1, 1, stride, dilation, low, high)));
  };
  constexpr int64_t limit = int64_t{1} << 31;
  EXPECT_EQ(error(1, 1, 0, 0), "no error");
  EXPECT_EQ(error(limit, limit, limit, limit), "no error");
  EXPECT_EQ(error(limit + 1, 1, 0, 0), "conv1d: stride 2147483649 of spatial axis 0 must be from 1 to 2147483648.");
  EXPECT_EQ(error(0, 1, 0, 0), "conv1d: stride 0 of spatial axis 0 must be from 1 to 2147483648.");
  EXPECT_EQ(error(1, limit + 1, 0, 0), "conv1d: dilation 2147483649 of spatial axis 0 must be from 1 to 2147483648.");
  EXPECT_EQ(error(1, 0, 0, 0), "conv1d: dilation 0 of spatial axis 0 must be from 1 to 2147483648.");
  EXPECT_EQ(error(1, 1, limit + 1, 0),
            "conv1d: padding (2147483649, 0) of spatial axis 0 must be from 0 to 2147483648.");
  EXPECT_EQ(error(1, 1, 0, limit + 1),
            "conv1d: padding (0, 2147483649) of spatial axis 0 must be from 0 to 2147483648.");
  EXPECT_EQ(error(1, 1, -1, 0), "conv1d: padding (-1, 0) of spatial axis 0 must be from 0 to 2147483648.");
  EXPECT_EQ(error(1, 1, 0, -1), "conv1d: padding (0, -1) of spatial axis 0 must be from 0 to 2147483648.");
}

TEST(Convolution, RefusesAKernelWhoseExtentOverflows) {
  constexpr int64_t limit = int64_t{1} << 31;
  const auto error = [](int64_t kernel) {
    return error_of(convolution("conv1d", {1, 1, 8}, {1, 1, kernel}, nullptr, window(1, 1, 1, limit, 0, 0)));
  };
  EXPECT_NE(error((int64_t{1} << 31) + 1).find("is longer than spatial axis 0"), std::string::npos);  // 2^62 + 1
  for (const int64_t kernel : {(int64_t{1} << 31) + 2, (int64_t{1} << 32) + 1, (int64_t{1} << 33) + 1}) {
    EXPECT_EQ(error(kernel).find("is longer than spatial axis 0"), std::string::npos) << kernel;
    EXPECT_NE(error(kernel), "no error") << kernel;
  }
}

int64_t pooled(int64_t dim, int64_t kernel, int64_t stride, int64_t low, int64_t high, bool ceil_mode,
               int64_t dilation = 1) {
  ep_pooling_attributes attributes = {};
  attributes.spatial_rank = 1;
  attributes.kernel[0] = kernel;
  attributes.stride[0] = stride;
  attributes.dilation[0] = dilation;
  attributes.pad_low[0] = low;
  attributes.pad_high[0] = high;
  const auto dims = pooling("max_pool1d", {1, 1, dim}, attributes, ceil_mode);
  return dims.ok() ? dims.value()[2] : -1;
}

TEST(Pooling, FollowsPyTorchInCeilMode) {
  EXPECT_EQ(pooled(5, 2, 2, 0, 0, false), 2);
  EXPECT_EQ(pooled(5, 2, 2, 0, 0, true), 3);
  // The last window would start in the padding.
  EXPECT_EQ(pooled(2, 2, 2, 1, 1, true), 2);
  EXPECT_EQ(pooled(4, 3, 3, 1, 1, true), 2);
  EXPECT_EQ(pooled(2, 3, 2, 0, 0, true), 1);
  EXPECT_EQ(pooled(2, 3, 2, 0, 0, false), -1);
  EXPECT_EQ(pooled(5, 2, 2, 2, 0, false), -1);
  EXPECT_EQ(pooled(5, 2, 2, 0, 2, false), -1);
  EXPECT_EQ(pooled(5, 0, 1, 0, 0, false), -1);
  EXPECT_EQ(pooled(5, 2, 1, 0, 0, false, 3), 2);
  EXPECT_EQ(pooled(5, 2, 1, 2, 2, false, 3), 6);
  EXPECT_EQ(pooled(3, 3, 3, 0, 1, true), 1);  // a second window would start in the high padding
}

TEST(Pooling, SamePaddingKeepsTheCeilOfTheQuotient) {
  for (int64_t dim = 1; dim < 20; ++dim) {
    for (int64_t kernel = 1; kernel < 5; ++kernel) {
      for (int64_t stride = 1; stride < 4; ++stride) {
        for (int64_t dilation = 1; dilation < 4; ++dilation) {
          const int64_t extent = dilation * (kernel - 1) + 1;
          int64_t low = 0, high = 0, lower_low = 0, lower_high = 0;
          same_padding(dim, kernel, stride, dilation, false, &low, &high);
          EXPECT_LE(high - low, 1);
          EXPECT_GE(high, low);
          EXPECT_EQ((dim + low + high - extent) / stride + 1, (dim + stride - 1) / stride)
              << dim << " " << kernel << " " << stride << " " << dilation;
          same_padding(dim, kernel, stride, dilation, true, &lower_low, &lower_high);
          EXPECT_EQ(lower_low, high);
          EXPECT_EQ(lower_high, low);
        }
      }
    }
  }
}

TEST(Concat, AddsUpItsAxis) {
  const Dims shapes[] = {{2, 3}, {2, 5}};
  EXPECT_EQ(concat("cat", shapes, 1).value(), (Dims{2, 8}));
  const Dims legacy[] = {{0}, {2, 5}};
  EXPECT_EQ(concat("cat", legacy, 1).value(), (Dims{2, 5}));
  EXPECT_NE(error_of(concat("cat", shapes, 0)).find("number 0 has shape [2, 3] and number 1 [2, 5]"),
            std::string::npos);
  EXPECT_FALSE(concat("cat", {}, 0).ok());
  const Dims wide[] = {{most}, {1}};
  EXPECT_FALSE(concat("cat", wide, 0).ok());
  const Dims longer[] = {{2, 3}, {2, 3, 1}};
  EXPECT_NE(error_of(concat("cat", longer, 0)).find("all tensors must have one rank"), std::string::npos);
  EXPECT_EQ(error_of(concat("cat", shapes, 2)), "cat: axis 2 is out of range for rank 2.");
}

TEST(Split, PartsMustAddUp) {
  EXPECT_EQ(split("split", {2, 7}, 1, list({3, 4})).value()[1], (Dims{2, 4}));
  EXPECT_NE(error_of(split("split", {2, 7}, 1, list({3, 3}))).find("leave out 1 of the 7"), std::string::npos);
  EXPECT_NE(error_of(split("split", {2, 7}, 1, list({3, most}))).find("longer than axis 1 (7)"), std::string::npos);
  EXPECT_EQ(error_of(split("split", {2, 7}, 1, list({8, -1}))),
            "split: the parts are longer than axis 1 (7) of shape [2, 7].");
  EXPECT_EQ(error_of(split("split", {2, 7}, 1, list({-1, 8}))), "split: a part of length -1 is not possible.");
  EXPECT_EQ(split_sizes("split", 7, 3).value(), (std::vector<int64_t>{3, 3, 1}));
  EXPECT_EQ(split_sizes("split", 0, 3).value(), std::vector<int64_t>{0});
  EXPECT_FALSE(split_sizes("split", 7, 0).ok());
}

TEST(Pad, ChecksWhatItsModeAllows) {
  EXPECT_EQ(pad("pad", {2, 3}, EP_PAD_CONSTANT, list({1, 0}), list({0, -2})).value(), (Dims{3, 1}));
  EXPECT_EQ(pad("pad", {4}, EP_PAD_REFLECT, list({3}), list({3})).value(), Dims{10});
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_REFLECT, list({4}), list({0})).ok());
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_REFLECT, list({0}), list({4})).ok());
  EXPECT_EQ(pad("pad", {0, 4}, EP_PAD_REFLECT, list({0, 1}), list({0, 1})).value(), (Dims{0, 6}));
  EXPECT_FALSE(pad("pad", {0}, EP_PAD_EDGE, list({1}), list({0})).ok());
  EXPECT_EQ(pad("pad", {0}, EP_PAD_EDGE, list({0}), list({0})).value(), Dims{0});
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_EDGE, list({0}), list({-1})).ok());
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_EDGE, list({-1}), list({0})).ok());
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_CONSTANT, list({-3}), list({-2})).ok());
  EXPECT_FALSE(pad("pad", {4}, EP_PAD_CONSTANT, list({most}), list({0})).ok());
  EXPECT_FALSE(pad("pad", {4, 4}, EP_PAD_CONSTANT, list({1}), list({0})).ok());
}

TEST(Gather, ReplacesTheAxisByTheIndices) {
  EXPECT_EQ(gather_slices("gather", {5, 6, 7}, 1, {2, 3}).value(), (Dims{5, 2, 3, 7}));
  EXPECT_EQ(gather_slices("gather", {5, 6, 7}, 1, {}).value(), (Dims{5, 7}));
  EXPECT_NE(error_of(gather_slices("gather", {1, 1, 1, 1, 1}, 0, {1, 1, 1, 1, 1})).find("rank 9, more than 8"),
            std::string::npos);
  EXPECT_EQ(gather_elements("gather", {5, 6}, 1, {4, 9}).value(), (Dims{4, 9}));
  EXPECT_FALSE(gather_elements("gather", {5, 6}, 1, {6, 2}).ok());
  EXPECT_FALSE(gather_elements("gather", {5, 6, 1}, 1, {4, 2}).ok());
  EXPECT_EQ(error_of(gather_slices("gather", {5, 0, 7}, 1, {2})),
            "gather: axis 1 of shape [5, 0, 7] has no elements to take.");
  EXPECT_EQ(gather_slices("gather", {5, 0, 7}, 1, {0}).value(), (Dims{5, 0, 7}));
  EXPECT_EQ(gather_coordinates<int64_t>({5, 6, 7, 8}, {5, 9, 2}, 1, 2), (Dims{5, 9, 8}));
}

TEST(Reshape, WorksOutTheOpenDim) {
  EXPECT_EQ(reshape("reshape", {2, 3, 4}, list({4, -1})).value(), (Dims{4, 6}));
  EXPECT_EQ(reshape("reshape", {}, list({1, 1})).value(), (Dims{1, 1}));
  EXPECT_EQ(error_of(reshape("reshape", {2, 3}, list({4, -1}))),
            "reshape: shape [4, -1] does not fit the 6 elements of shape [2, 3].");
  EXPECT_EQ(error_of(reshape("reshape", {2, 3}, list({-1, -1}))), "reshape: only one dim of [-1, -1] may be -1.");
  EXPECT_FALSE(reshape("reshape", {0, 3}, list({0, -1})).ok());
  EXPECT_FALSE(reshape("reshape", {2}, list({huge, huge, -1})).ok());
  EXPECT_FALSE(reshape("reshape", {2}, list({-2, -1})).ok());
  const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(error_of(reshape("reshape", {1}, nine)), "reshape: rank 9 is more than 8.");
  EXPECT_EQ(flatten("flatten", {2, 3, 4}, 1, -1).value(), (Dims{2, 12}));
  EXPECT_EQ(flatten("flatten", {}, 0, -1).value(), Dims{1});
  EXPECT_EQ(flatten("flatten", {2, 3, 4, 5}, 1, 2).value(), (Dims{2, 12, 5}));
  EXPECT_EQ(error_of(flatten("flatten", {2, 3}, 1, 0)),
            "flatten: the start axis 1 comes after the end axis 0 for rank 2.");
}

// The offsets of a view's elements in row-major order.
std::vector<int64_t> places(const Dims& dims, const Dims& strides) {
  std::vector<int64_t> all;
  for (int64_t number = 0; number < element_count(dims); ++number) {
    int64_t place = 0;
    int64_t rest = number;
    for (int32_t a = dims.rank() - 1; a >= 0; --a) {
      place += rest % dims[a] * strides[a];
      rest /= dims[a];
    }
    all.push_back(place);
  }
  return all;
}

TEST(Reshape, StridesReadTheSameElementsInTheSameOrder) {
  const View views[] = {contiguous({4, 6}),          {{4, 6}, {1, 4}, 0}, {{2, 3, 4}, {24, 8, 2}, 0},
                        {{2, 3, 4}, {100, 4, 1}, 0}, {{4, 6}, {0, 1}, 0}, {{4, 6}, {0, 0}, 0},
                        {{1, 24}, {7, 3}, 0},        {{24, 1}, {3, 7}, 0}};
  const Dims targets[] = {{24}, {2, 12}, {12, 2}, {2, 3, 4}, {4, 6}, {8, 3}, {1, 24, 1}, {2, 2, 6}, {4, 1, 3, 2}};
  int found = 0;
  for (const View& view : views) {
    for (const Dims& target : targets) {
      const auto strides = reshape_strides(view, target);
      if (!strides) continue;
      ++found;
      EXPECT_EQ(places(target, *strides), places(view.dims, view.strides))
          << to_string(view.strides) << " as " << to_string(target);
    }
  }
  EXPECT_GT(found, 40);
  EXPECT_TRUE(reshape_strides(contiguous({}), {1, 1}));
  EXPECT_FALSE(reshape_strides({{4, 6}, {1, 4}, 0}, {24}));
  EXPECT_FALSE(reshape_strides({{4, 6}, {1, 4}, 0}, {12, 2}));
  EXPECT_TRUE(reshape_strides({{4, 6}, {1, 4}, 0}, {2, 2, 6}));
}

TEST(View, Permutes) {
  const Dims dims{2, 3, 4};
  const Dims order = permutation("permute", dims, list({2, 0, -2})).value();
  EXPECT_EQ(permuted(dims, order), (Dims{4, 2, 3}));
  EXPECT_EQ(permuted(contiguous_strides(dims), order), (Dims{1, 12, 4}));
  EXPECT_FALSE(permutation("permute", Dims{2, 3}, list({0})).ok());
  EXPECT_FALSE(permutation("permute", Dims{2, 3}, list({0, 0})).ok());
  EXPECT_FALSE(permutation("permute", Dims{2, 3}, list({0, 2})).ok());
}

// Python: list(range(dim))[start:stop:step].
TEST(View, SlicesAsPython) {
  const int64_t bounds[] = {least, -9, -5, -4, -1, 0, 1, 3, 4, 5, 9, most};
  for (int64_t dim : {0, 1, 4, 5}) {
    for (int64_t start : bounds) {
      for (int64_t stop : bounds) {
        for (int64_t step : {int64_t{1}, int64_t{2}, int64_t{7}, most, int64_t{-1}, int64_t{-2}, int64_t{-7}, least}) {
          std::vector<int64_t> want;
          const bool forward = step > 0;
          const auto bound = [&](int64_t at) {
            if (at < 0) at += dim;
            if (at < 0) return forward ? int64_t{0} : int64_t{-1};
            if (at >= dim) return forward ? dim : dim - 1;
            return at;
          };
          const int64_t last = bound(stop);
          for (__int128 at = bound(start); forward ? at < last : at > last; at += step)
            want.push_back(static_cast<int64_t>(at));
          const SliceRange range = slice_range("slice", dim, start, stop, step).value();
          std::vector<int64_t> got;
          for (int64_t i = 0; i < range.length; ++i) got.push_back(range.start + i * range.step);
          EXPECT_EQ(got, want) << dim << "[" << start << ":" << stop << ":" << step << "]";
        }
      }
    }
  }
  EXPECT_EQ(error_of(slice_range<int64_t>("slice", 4, 0, 2, 0)), "slice: the step must not be 0.");
  const View view = slice(contiguous({4, 6}), 1, slice_range<int64_t>("slice", 6, 1, 6, 2).value());
  EXPECT_EQ(view.dims, (Dims{4, 3}));
  EXPECT_EQ(view.strides, (Dims{6, 2}));
  EXPECT_EQ(view.offset, 1);
}

TEST(View, SelectsExpandsSqueezesAndUnsqueezes) {
  const View chosen = select("select", contiguous({2, 3, 4}), 1, -1).value();
  EXPECT_EQ(chosen.dims, (Dims{2, 4}));
  EXPECT_EQ(chosen.offset, 8);
  EXPECT_EQ(error_of(select("select", contiguous({2, 3}), 1, 3)),
            "select: index 3 is out of range for axis 1 of length 3.");
  EXPECT_FALSE(select("select", contiguous({2, 3}), 1, -4).ok());
  uint32_t kept = 0;
  const auto expand = [&kept](const Dims& dims, std::span<const int64_t> target) {
    return expand_dims<int64_t>("expand", dims, target, &kept);
  };
  EXPECT_EQ(expand({3, 1}, list({2, -1, 4})).value(), (Dims{2, 3, 4}));
  EXPECT_EQ(kept, 0b010U);
  EXPECT_FALSE(expand({3}, list({4})).ok());
  EXPECT_FALSE(expand({3}, list({-1, 3})).ok());
  EXPECT_FALSE(expand({3, 1}, list({3})).ok());
  EXPECT_FALSE(expand({1}, list({-3})).ok());
  EXPECT_EQ(error_of(expand({1}, std::vector<int64_t>(9, 1))), "expand: rank 9 is more than 8.");
  EXPECT_EQ(squeeze("squeeze", contiguous({1, 3, 1}), {})->dims, Dims{3});
  EXPECT_EQ(squeeze("squeeze", contiguous({1, 3, 1}), list({0, 1}))->dims, (Dims{3, 1}));
  EXPECT_EQ(squeeze("squeeze", contiguous({1, 0, 3}), {})->dims, (Dims{0, 3}));
  EXPECT_EQ(unsqueeze("unsqueeze", contiguous({3, 4}), list({0, -1}))->dims, (Dims{1, 3, 4, 1}));
  EXPECT_EQ(unsqueeze("unsqueeze", contiguous({}), list({0}))->dims, Dims{1});
  EXPECT_TRUE(is_contiguous(unsqueeze("unsqueeze", contiguous({3, 4}), list({1}))->dims,
                            unsqueeze("unsqueeze", contiguous({3, 4}), list({1}))->strides));
}

// A view that begins at element 5 still does after another rule.
TEST(View, KeepsItsOffset) {
  const View view = {{2, 1, 4}, {4, 4, 1}, 5};
  EXPECT_EQ(squeeze("squeeze", view, {})->offset, 5);
  EXPECT_EQ(unsqueeze("unsqueeze", view, list({0}))->offset, 5);
  EXPECT_EQ(select("select", view, 0, 1)->offset, 9);
  EXPECT_EQ(slice(view, 2, slice_range<int64_t>("slice", 4, 1, 4, 2).value()).offset, 6);
}

// With at most one element, position and step do not change which elements are read, and keep their values.
TEST(View, ShortSlicesKeepTheirStride) {
  const View none = slice({{4, 6}, {6, 1}, 5}, 1, {3, 0, 1});
  EXPECT_EQ(none.dims, (Dims{4, 0}));
  EXPECT_EQ(none.offset, 5);
  EXPECT_EQ(slice({{4, 6}, {6, 1}, 0}, 1, {3, 1, 4}).strides, (Dims{6, 1}));
}

TEST(View, InjectiveLayoutsMayBeWritten) {
  EXPECT_TRUE(is_injective({3, 4}, {4, 1}));
  EXPECT_TRUE(is_injective({3, 4}, {1, 3}));
  EXPECT_TRUE(is_injective({3, 4}, {10, 2}));
  EXPECT_TRUE(is_injective({3, 1}, {1, 0}));
  EXPECT_TRUE(is_injective({0, 4}, {0, 0}));  // a tensor without elements has no two at one place
  EXPECT_FALSE(is_injective({3, 4}, {0, 1}));
  EXPECT_FALSE(is_injective({3, 4}, {2, 1}));
}

TEST(Types, FollowPyTorch) {
  EXPECT_EQ(unary("exp", EP_UNARY_exp, DType::i32)->result, DType::f32);
  EXPECT_EQ(unary("relu", EP_UNARY_relu, DType::f16)->result, DType::f16);
  EXPECT_EQ(unary("isnan", EP_UNARY_isnan, DType::f16)->result, DType::boolean);
  EXPECT_EQ(unary("isnan", EP_UNARY_isnan, DType::f16)->compute, DType::f16);
  EXPECT_EQ(binary("add", EP_BINARY_add, DType::u8, DType::i8)->result, DType::i16);
  EXPECT_EQ(binary("lt", EP_BINARY_lt, DType::i32, DType::f32)->compute, DType::f32);
  EXPECT_EQ(error_of(binary("bitwise_and", EP_BINARY_bitwise_and, DType::f32, DType::i32)),
            "bitwise_and: is not defined on f32 (bitwise_and takes integers and bool).");
  EXPECT_EQ(ternary("where", EP_TERNARY_where, DType::boolean, DType::i32, DType::f32)->result, DType::f32);
  EXPECT_EQ(error_of(ternary("where", EP_TERNARY_where, DType::f32, DType::i32, DType::f32)),
            "where: the condition must be bool, not f32.");
  EXPECT_EQ(reduce("sum", EP_REDUCE_sum, DType::boolean)->result, DType::i64);
  EXPECT_EQ(reduce("max", EP_REDUCE_max, DType::i8)->result, DType::i8);
  for (const int32_t op : {EP_REDUCE_sum, EP_REDUCE_prod, EP_REDUCE_l1_norm, EP_REDUCE_sum_square})
    EXPECT_EQ(reduce("sum", op, DType::u8)->result, DType::i64) << op;
  EXPECT_EQ(reduce("max", EP_REDUCE_max, DType::boolean)->compute, DType::u8);
  EXPECT_EQ(reduce("max", EP_REDUCE_max, DType::boolean)->result, DType::boolean);
  EXPECT_EQ(unary("square", EP_UNARY_square, DType::boolean)->result, DType::i64);
  EXPECT_EQ(reduce("any", EP_REDUCE_any, DType::f32)->compute, DType::boolean);
  EXPECT_FALSE(reduce("mean", EP_REDUCE_mean, DType::i32).ok());
  EXPECT_EQ(promote_number(DType::f16, DTypeClass::FLOAT), DType::f16);
  EXPECT_EQ(promote_number(DType::i8, DTypeClass::FLOAT), DType::f32);
  EXPECT_EQ(promote_number(DType::i8, DTypeClass::INT), DType::i8);
  EXPECT_EQ(promote_number(DType::boolean, DTypeClass::INT), DType::i64);
  EXPECT_EQ(promote_number(DType::i8, DTypeClass::BOOL), DType::i8);
}

}  // namespace
}  // namespace tenon::infer
