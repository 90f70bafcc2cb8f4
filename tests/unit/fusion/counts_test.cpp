// The number of kernels of a graph, for the lists of sub-graphs that are used to compare compilers, each with sizes
// that are numbers, with an open first axis, and with every axis open.
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "tests/unit/fusion/kernel_counts.h"

namespace tenon::codegen {
namespace {

Scalar number(double value) { return Scalar(value); }

TEST(KernelCount, RmsNormInElementaryOps) {
  expect_kernels(1, {{{7, 2048, 768}}, {{768}}}, [](const TensorList& in) {
    const Tensor mean_square = div(sum(pow(in[0], number(2)), Dims{-1}, true), number(768));
    return TensorList{in[0] * rsqrt(mean_square + number(1e-6)) * in[1]};
  });
}

TEST(KernelCount, Softmax) {
  expect_kernels(1, {{{32, 17, 129}}}, [](const TensorList& in) {
    const Tensor powers = exp(in[0] - amax(in[0], Dims{-1}, true));
    return TensorList{div(powers, sum(powers, Dims{-1}, true))};
  });
}

TEST(KernelCount, ColumnSoftmax) {
  expect_kernels(1, {{{33, 129}}}, [](const TensorList& in) {
    const Tensor powers = exp(in[0] - amax(in[0], Dims{0}, true));
    return TensorList{div(powers, sum(powers, Dims{0}, true))};
  });
}

TEST(KernelCount, SoftmaxWithTwoResultsAndACast) {
  expect_kernels(1, {{{1, 32, 17, 17}, DType::f64}, {{1, 1, 17, 17}}}, [](const TensorList& in) {
    const Tensor x = cast(in[0], DType::f32) + in[1];
    const Tensor powers = exp(x - amax(x, Dims{-1}, true));
    return TensorList{x, div(powers, sum(powers, Dims{-1}, true))};
  });
}

TEST(KernelCount, MaskedSoftmax) {
  expect_kernels(1, {{{8, 16, 65}}, {{8, 16, 65}, DType::boolean}}, [](const TensorList& in) {
    const Tensor scores = where(in[1], in[0] * number(0.125), number(-std::numeric_limits<double>::infinity()));
    return TensorList{cast(softmax(scores, -1), DType::bf16)};
  });
}

TEST(KernelCount, LayerNormWithThreeResults) {
  expect_kernels(1, {{{16, 31, 768}}, {{768}}, {{768}}}, [](const TensorList& in) {
    const Tensor average = mean(in[0], Dims{-1}, true);
    const Tensor centred = in[0] - average;
    const Tensor rstd = rsqrt(mean(square(centred), Dims{-1}, true) + number(1e-5));
    return TensorList{centred * rstd * in[1] + in[2], average, rstd};
  });
}

TEST(KernelCount, LayerNormByMoments) {
  expect_kernels(1, {{{129, 768}}}, [](const TensorList& in) {
    const Tensor average = mean(in[0], Dims{-1}, true), squares = mean(square(in[0]), Dims{-1}, true);
    return TensorList{(in[0] - average) * rsqrt(squares - square(average) + number(1e-5))};
  });
}

TEST(KernelCount, ResidualAndRmsNorm) {
  expect_kernels(1, {{{64, 768}}, {{64, 768}}, {{768}}}, [](const TensorList& in) {
    const Tensor x = in[0] + in[1];
    return TensorList{x, rms_norm(x, {768}, in[2], 1e-6)};
  });
}

TEST(KernelCount, Activations) {
  const auto chains = std::vector<Program>{
      [](const TensorList& in) { return TensorList{gelu(in[0] + in[1])}; },
      [](const TensorList& in) { return TensorList{in[0] * number(0.5) * (erf(in[0] * number(0.7071)) + number(1))}; },
      [](const TensorList& in) { return TensorList{in[0] * sigmoid(in[0])}; },
      [](const TensorList& in) { return TensorList{gelu(in[0] + in[1]) + in[0]}; },
      [](const TensorList& in) {
        return TensorList{in[0] * clamp(in[0] + number(3), number(0), number(6)) / number(6)};
      },
  };
  for (const Program& chain : chains) expect_kernels(1, {{{64, 3072}}, {{3072}}}, chain);
}

TEST(KernelCount, SwiGluOfOneProduct) {
  expect_kernels(1, {{{64, 512}}}, [](const TensorList& in) {
    return TensorList{silu(slice(in[0], 1, 0, 256)) * slice(in[0], 1, 256, 512)};
  });
}

TEST(KernelCount, GradientOfSoftmax) {
  expect_kernels(1, {{{64, 129}}, {{64, 129}}},
                 [](const TensorList& in) { return TensorList{in[0] * (in[1] - sum(in[0] * in[1], Dims{-1}, true))}; });
}

TEST(KernelCount, GradientsOfRmsNorm) {
  expect_kernels(2, {{{64, 768}}, {{64, 768}}, {{64, 1}}, {{768}}}, [](const TensorList& in) {
    const Tensor normed = in[0] * in[2], scaled = in[1] * in[3];
    const Tensor dx = (scaled - normed * mean(scaled * normed, Dims{-1}, true)) * in[2];
    return TensorList{dx, sum(in[1] * normed, Dims{0})};
  });
}

TEST(KernelCount, GradientsOfLayerNorm) {
  expect_kernels(2, {{{64, 768}}, {{64, 768}}, {{64, 1}}, {{768}}}, [](const TensorList& in) {
    const Tensor normed = in[0] * in[2], scaled = in[1] * in[3];
    const Tensor dx = (scaled - mean(scaled, Dims{-1}, true) - normed * mean(scaled * normed, Dims{-1}, true)) * in[2];
    return TensorList{dx, sum(in[1] * normed, Dims{0}), sum(in[1], Dims{0})};
  });
}

TEST(KernelCount, MomentsOverAll) {
  expect_kernels(1, {{{33, 129}}}, [](const TensorList& in) {
    const Tensor average = mean(in[0]);
    return TensorList{average, mean(square(in[0] - average))};
  });
}

TEST(KernelCount, FewItemsOfManyElementsStayApart) {
  expect_kernels(3, {{{2048, 2049}}}, [](const TensorList& in) {
    const Tensor average = mean(in[0]);
    return TensorList{average, mean(square(in[0] - average))};
  });
}

TEST(KernelCount, NormalisedRowsAndSimilarity) {
  expect_kernels(1, {{{64, 768}}},
                 [](const TensorList& in) { return TensorList{in[0] / sqrt(sum(square(in[0]), Dims{-1}, true))}; });
  expect_kernels(1, {{{64, 768}}, {{64, 768}}}, [](const TensorList& in) {
    const Tensor a = sqrt(sum(square(in[0]), Dims{-1})), b = sqrt(sum(square(in[1]), Dims{-1}));
    return TensorList{sum(in[0] * in[1], Dims{-1}) / (a * b)};
  });
  expect_kernels(1, {{{64, 768}}}, [](const TensorList& in) {
    const Tensor least = amin(in[0], Dims{-1}, true), most = amax(in[0], Dims{-1}, true);
    return TensorList{(in[0] - least) / (most - least)};
  });
}

TEST(KernelCount, QuantisedRows) {
  expect_kernels(1, {{{64, 768}}}, [](const TensorList& in) {
    const Tensor scale = amax(abs(in[0]), Dims{-1}, true) / number(127);
    return TensorList{cast(round(in[0] / scale), DType::i8), scale};
  });
}

TEST(KernelCount, GroupNorm) {
  expect_kernels(1, {{{2, 128, 16, 16}}, {{128, 1, 1}}, {{128, 1, 1}}}, [](const TensorList& in) {
    const Tensor rows = reshape(in[0], {2, 32, 4, 256});
    const Tensor centred = rows - mean(rows, Dims{2, 3}, true);
    const Tensor normed = centred * rsqrt(mean(square(centred), Dims{2, 3}, true) + number(1e-5));
    return TensorList{reshape(normed, {2, 128, 16, 16}) * in[1] + in[2]};
  });
}

TEST(KernelCount, TransposeAddAndReduce) {
  expect_kernels(1, {{{64, 33}}, {{33, 64}}}, [](const TensorList& in) {
    return TensorList{sum(permute(in[0], {1, 0}) + in[1], Dims{0})};
  });
}

TEST(KernelCount, OuterProductOfSums) {
  expect_kernels(3, {{{64, 33}}, {{65, 31}}}, [](const TensorList& in) {
    return TensorList{sum(in[0], Dims{1}, true) * reshape(sum(in[1], Dims{1}), {1, -1})};
  });
}

TEST(KernelCount, APathThroughAProduct) {
  expect_kernels(3, {{{64, 64}}, {{64, 64}}}, [](const TensorList& in) {
    const Tensor a = exp(in[0]) * number(2);
    return TensorList{a + relu(matmul(a, in[1])) * number(0.5)};
  });
}

TEST(KernelCount, ReductionThatIsBroadcastBack) {
  expect_kernels(1, {{{32, 33, 34}}},
                 [](const TensorList& in) { return TensorList{in[0] + sum(in[0], Dims{-1}, true)}; });
}

TEST(KernelCount, ReshapedSums) {
  expect_kernels(1, {{{32, 33, 34}}}, [](const TensorList& in) {
    return TensorList{reshape(sum(in[0], Dims{-1}), {1, -1}) * number(2)};
  });
  expect_kernels(1, {{{32, 33, 34}}}, [](const TensorList& in) {
    return TensorList{reshape(in[0] + sum(in[0], Dims{-1}, true), {1, -1}) * number(2)};
  });
}

TEST(KernelCount, TwoResultsOfOneChain) {
  expect_kernels(1, {{{17, 17}}}, [](const TensorList& in) {
    const Tensor y = in[0] * number(2) * number(2);
    return TensorList{y, reshape(y, {1, 289})};
  });
}

TEST(KernelCount, SumsOfOneInput) {
  expect_kernels(1, {{{256, 128}}},
                 [](const TensorList& in) { return TensorList{sum(in[0], Dims{-1}) * sum(in[0] * in[0], Dims{-1})}; });
}

TEST(KernelCount, ReductionsInATree) {
  // With every size open it is not known that both lengths are equal.
  const Program tree = [](const TensorList& in) {
    const Tensor most = expand(amax(in[0], Dims{-1}), {128, -1, -1});
    return TensorList{sum(most, Dims{0})};
  };
  expect_kernels(1, {{{32, 33, 128}}}, tree, {Open::nothing, Open::batch});
  expect_kernels(2, {{{32, 33, 128}}}, tree, {Open::all});
  expect_kernels(2, {{{32, 33, 128}}}, [](const TensorList& in) {
    const Tensor most = amax(in[0], Dims{-1});
    return TensorList{sum(expand(exp(most) + most, {96, -1, -1}), Dims{0})};
  });
}

TEST(KernelCount, ReductionsOfOtherAxesStayApart) {
  expect_kernels(2, {{{64, 128, 96}}}, [](const TensorList& in) {
    return TensorList{amax(in[0], Dims{2}), sum(in[0], Dims{1, 2})};
  });
}

TEST(KernelCount, SeveralResultsOfMaps) {
  expect_kernels(1, {{{32, 32, 128}}}, [](const TensorList& in) {
    const Tensor x = in[0] + number(1);
    const Tensor a = x * number(2), b = exp(x), c = x - number(4);
    return TensorList{a, a + b, b * c, c, relu(c)};
  });
}

TEST(KernelCount, MapsAreComputedAgainForTwoReductions) {
  expect_kernels(2, {{{8, 16, 32, 128}}}, [](const TensorList& in) {
    const Tensor x = in[0] + number(1);
    return TensorList{sum(slice(x, 3, 0, 64), Dims{3}), amax(slice(x, 2, 0, 16), Dims{2})};
  });
}

TEST(KernelCount, ResultsBesideReductionsOfOtherAxes) {
  expect_kernels(2, {{{4, 256, 16, 17}}}, [](const TensorList& in) {
    const Tensor x = in[0] * number(2);
    return TensorList{x, amax(x, Dims{2}), amax(x, Dims{3})};
  });
}

TEST(KernelCount, ReshapeBesideItsValue) {
  expect_kernels(1, {{{1, 3, 1, 16, 1, 32, 1}}}, [](const TensorList& in) {
    const Tensor x = in[0] * number(2);
    return TensorList{x, reshape(x + number(2), {-1})};
  });
}

TEST(KernelCount, ConcatAndSliceInFrontOfMaps) {
  expect_kernels(1, {{{8, 64}}, {{8, 33}}}, [](const TensorList& in) {
    return TensorList{relu(concat({in[0], in[1]}, 1)) * number(2)};
  });
}

TEST(KernelCount, ViewsAloneAreNoKernel) {
  expect_kernels(0, {{{8, 64}}}, [](const TensorList& in) { return TensorList{slice(in[0], 1, 3, 40)}; });
}

TEST(KernelCount, ANodeWithAPrimitiveStays) {
  graph::Graph graph = record(
      {{{8, 64}}}, [](const TensorList& in) { return TensorList{softmax(in[0], 1)}; }, Open::all);
  EXPECT_TRUE(find_groups(graph).groups.empty());
}

// A program that took hours when each step looked at the whole program.
TEST(KernelCount, LongProgramsAreKernelsOfTheGreatestSize) {
  constexpr size_t kLong = 20'000;
  const graph::Graph chain = record(
      {{{4}}, {{4}}},
      [](const TensorList& in) {
        Tensor all = in[0];
        for (size_t i = 0; i < kLong; ++i) all = i % 2 == 0 ? all + in[1] : tanh(all);
        return TensorList{all};
      },
      Open::nothing);
  graph::Graph copy = chain.copy();
  const size_t most = FuseOptions{}.most_nodes;
  EXPECT_EQ(kernel_count(chain, find_groups(copy, {.logs = false})), (kLong + most - 1) / most);
}

TEST(KernelCount, ManyInputsAreSeveralKernels) {
  std::vector<Input> inputs(300, {{8, 64}});
  const Program code = [](const TensorList& in) {
    Tensor all = in[0];
    for (size_t i = 1; i < in.size(); ++i) all = all + in[i];
    return TensorList{all};
  };
  graph::Graph graph = record(inputs, code, Open::nothing);
  const Fusion fusion = find_groups(graph);
  for (const FusionGroup& group : fusion.groups) {
    EXPECT_LE(group.inputs.size() + group.outputs.size(), FuseOptions{}.most_buffers);
  }
  EXPECT_EQ(kernel_count(graph, fusion), 10u);
}

}  // namespace
}  // namespace tenon::codegen
