// The number of kernels of forward and backward of norms and activations, with gradients recorded as for their ops.
#include <gtest/gtest.h>

#include "core/autograd/autograd.h"
#include "core/autograd/interpreter.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "tests/unit/fusion/kernel_counts.h"

namespace tenon::codegen {
namespace {

// The result of `code`, and the gradients of its inputs for the gradient in the last input.
Program with_gradients(const Program& code) {
  return [code](const TensorList& in) {
    autograd::GradientInterpreter gradients(autograd::interpreter_below());
    const InterpreterScope scope(gradients);
    TensorList leaves;
    for (size_t i = 0; i + 1 < in.size(); ++i) leaves.push_back(in[i].detach().requires_grad_());
    const TensorList results = code(leaves);
    TensorList all = grad({sum(results[0] * in.back())}, leaves);
    all.insert(all.begin(), results[0]);
    return all;
  };
}

TEST(TrainingCount, Softmax) {
  expect_kernels(1, {{{64, 129}}, {{64, 129}}},
                 with_gradients([](const TensorList& in) { return TensorList{softmax(in[0], -1)}; }));
  expect_kernels(1, {{{64, 129}}, {{64, 129}}},
                 with_gradients([](const TensorList& in) { return TensorList{log_softmax(in[0], -1)}; }));
}

TEST(TrainingCount, RmsNorm) {
  expect_kernels(2, {{{64, 768}}, {{768}}, {{64, 768}}},
                 with_gradients([](const TensorList& in) { return TensorList{rms_norm(in[0], {768}, in[1], 1e-6)}; }));
}

TEST(TrainingCount, RmsNormInElementaryOps) {
  expect_kernels(2, {{{64, 768}}, {{768}}, {{64, 768}}}, with_gradients([](const TensorList& in) {
                   return TensorList{in[0] * rsqrt(mean(square(in[0]), Dims{-1}, true) + Scalar(1e-6)) * in[1]};
                 }));
}

TEST(TrainingCount, LayerNorm) {
  expect_kernels(2, {{{64, 768}}, {{768}}, {{768}}, {{64, 768}}}, with_gradients([](const TensorList& in) {
                   return TensorList{layer_norm(in[0], {768}, in[1], in[2], 1e-5)};
                 }));
}

TEST(TrainingCount, SwiGlu) {
  expect_kernels(1, {{{64, 256}}, {{64, 256}}, {{64, 256}}},
                 with_gradients([](const TensorList& in) { return TensorList{silu(in[0]) * in[1]}; }));
  expect_kernels(2, {{{64, 512}}, {{64, 256}}}, with_gradients([](const TensorList& in) {
                   return TensorList{silu(slice(in[0], 1, 0, 256)) * slice(in[0], 1, 256, 512)};
                 }));
}

}  // namespace
}  // namespace tenon::codegen
