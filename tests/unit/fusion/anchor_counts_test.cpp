// The number of kernels of programs with several results that begin with one value and end in views, maps and
// reductions of it; of norms of images, and of parts of language models.
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/functors/positions.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "tests/unit/fusion/kernel_counts.h"

namespace tenon::codegen {
namespace {

Scalar number(double value) { return Scalar(value); }

TEST(AnchorCount, SliceAndExpandOfASum) {
  expect_kernels(1, {{{32, 64, 128}}}, [](const TensorList& in) {
    const Tensor total = sum(in[0], Dims{0});
    return TensorList{slice(total, 0, 1, 32), expand(unsqueeze(total, 0), {32, -1, -1})};
  });
}

TEST(AnchorCount, SliceAndExpandInEitherOrder) {
  expect_kernels(1, {{{16, 32, 128}}}, [](const TensorList& in) {
    const Tensor x = in[0] + number(1);
    return TensorList{expand(slice(x, 0, 0, 1), {16, -1, -1}),
                      slice(expand(unsqueeze(x, 0), {3, -1, -1, -1}), 1, 0, 1)};
  });
}

TEST(AnchorCount, SumsThatAreSummedAgain) {
  expect_kernels(1, {{{32, 64, 128}}}, [](const TensorList& in) {
    const Tensor x = in[0] + number(2), most = amax(x, Dims{0});
    const Tensor back = expand(unsqueeze(most, 0), SizeList(sizes(in[0])));
    return TensorList{sum(x, Dims{0}), most - number(4), sum(back, Dims{0})};
  });
}

TEST(AnchorCount, AMapAndItsMaximum) {
  expect_kernels(1, {{{32}}}, [](const TensorList& in) {
    const Tensor x = in[0] + number(1);
    return TensorList{x, amax(x)};
  });
}

TEST(AnchorCount, OneValueInFourWays) {
  expect_kernels(1, {{{16, 32, 64}}, {{16, 32, 64}}}, [](const TensorList& in) {
    const Tensor x = in[0] * in[1] + in[0];
    const SizeList whole(sizes(x));
    const Tensor most = expand(amax(x, Dims{0}, true), whole);
    const Tensor first = expand(slice(x, 0, 0, 1), whole);
    return TensorList{exp(x), first, sum(most, Dims{0}), permute(x, {0, 2, 1}) * number(3)};
  });
}

TEST(AnchorCount, BatchNorm) {
  expect_kernels(1, {{{128, 2048, 7, 7}}, {{2048}}, {{2048}}, {{2048}}, {{2048}}}, [](const TensorList& in) {
    const auto channels = [](const Tensor& list) { return reshape(list, {1, -1, 1, 1}); };
    const Tensor average = mean(in[0], Dims{0, 2, 3}, true), centred = in[0] - average;
    const Tensor spread = mean(square(centred), Dims{0, 2, 3}, true);
    const Tensor y = centred * rsqrt(spread + number(1e-5)) * channels(in[1]) + channels(in[2]);
    return TensorList{y, in[3] * number(0.9) + reshape(average, {-1}) * number(0.1),
                      in[4] * number(0.9) + reshape(spread, {-1}) * number(0.1)};
  });
}

Tensor rotated(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const int64_t half = 32;
  const Tensor turned = concat({neg(slice(x, -1, half, 64)), slice(x, -1, 0, half)}, -1);
  return x * cosines + turned * sines;
}

TEST(AnchorCount, RotaryEmbedding) {
  expect_kernels(1, {{{2, 128, 8, 64}}, {{2, 128, 8, 64}}, {{1, 128, 1, 64}}, {{1, 128, 1, 64}}},
                 [](const TensorList& in) {
                   return TensorList{rotated(in[0], in[2], in[3]), rotated(in[1], in[2], in[3])};
                 });
}

TEST(AnchorCount, GroupNormOfChannelsAtTheEnd) {
  expect_kernels(1, {{{1, 128, 256, 128}}, {{128}}, {{128}}},
                 [](const TensorList& in) {
                   const Tensor rows = reshape(in[0], {1, 128, 256, 32, 4});
                   const Tensor centred = rows - mean(rows, Dims{1, 2, 4}, true);
                   const Tensor normed = centred * rsqrt(mean(square(centred), Dims{1, 2, 4}, true) + number(1e-5));
                   return TensorList{reshape(normed, {1, 128, 256, 128}) * in[1] + in[2]};
                 },
                 {Open::nothing});
}

TEST(AnchorCount, SeveralAxesAtOnce) {
  expect_kernels(1, {{{8, 16, 32}}},
                 [](const TensorList& in) { return TensorList{reshape(amax(in[0] * number(2)), {1})}; });
  expect_kernels(1, {{{3, 128, 96}}},
                 [](const TensorList& in) { return TensorList{amax(cast(in[0], DType::i32), Dims{2})}; });
  expect_kernels(1, {{{64, 128, 96}}}, [](const TensorList& in) {
    return TensorList{expand(amax(in[0] + number(1), Dims{0, 1}), {128, 96})};
  });
  expect_kernels(1, {{{8, 16, 32}}}, [](const TensorList& in) {
    const Tensor average = mean(in[0], Dims{0, 2}, true);
    return TensorList{(in[0] - average) * rsqrt(mean(square(in[0] - average), Dims{0, 2}, true) + number(1e-5))};
  });
}

TEST(AnchorCount, LogSoftmaxAndOneOfEachRow) {
  expect_kernels(2, {{{64, 129}}, {{64, 1}, DType::i64}},
                 [](const TensorList& in) { return TensorList{mean(neg(gather(log_softmax(in[0], 1), 1, in[1])))}; });
  expect_kernels(1, {{{1, 32000}, DType::f16}, {{1, 1}, DType::i32}, {{1, 1}, DType::f16}},
                 [](const TensorList& in) { return TensorList{gather(log_softmax(in[0], 1), 1, in[1]) + in[2]}; });
}

TEST(AnchorCount, OneElementOfARowInMemoryIsNoKernel) {
  expect_kernels(2, {{{64, 129}}, {{64, 1}, DType::i64}},
                 [](const TensorList& in) { return TensorList{neg(functors::gather_at(in[0], 1, in[1]))}; });
}

TEST(AnchorCount, AProductLargerThanWhatIsSummed) {
  expect_kernels(2, {{{64, 33}}, {{31}}},
                 [](const TensorList& in) { return TensorList{sum(in[0], Dims{1}, true) * in[1]}; });
}

TEST(AnchorCount, SizesOfZeroAndOne) {
  for (const Dims& dims : {Dims{0, 5}, Dims{5, 0}}) {
    expect_kernels(0, {{dims}}, [](const TensorList& in) { return TensorList{slice(in[0], 0, 0, 0)}; });
  }
  expect_kernels(1, {{{}}}, [](const TensorList& in) { return TensorList{exp(in[0]) * number(2) + in[0]}; });
  expect_kernels(1, {{{7, 1}}}, [](const TensorList& in) {
    return TensorList{in[0] * rsqrt(mean(square(in[0]), Dims{1}, true) + number(1e-5))};
  });
  expect_kernels(1, {{{1}}}, [](const TensorList& in) { return TensorList{in[0] - mean(in[0])}; });
}

}  // namespace
}  // namespace tenon::codegen
