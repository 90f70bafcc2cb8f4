// Training: a two-layer net against the same arithmetic in plain loops of double; a small convolutional net and a
// transformer block, whose loss must fall.
#include <gtest/gtest.h>

#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

void descend(const TensorList& parameters, double rate) {
  const NoGrad scope;
  for (const Tensor& parameter : parameters) {
    sub_(Tensor(parameter), parameter.grad() * rate);
    parameter.set_grad({});
  }
}

TensorList parameters_of(const std::vector<Dims>& shapes, double reach) {
  TensorList parameters;
  for (size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back(random_tensor(shapes[i], static_cast<uint32_t>(i + 1), -reach, reach).requires_grad_());
  }
  return parameters;
}

// The losses of `steps` steps.
template <class Loss>
Values train(const TensorList& parameters, int steps, double rate, const Loss& loss_of) {
  Values losses;
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = loss_of(parameters);
    loss.backward();
    losses.push_back(numbers(loss)[0]);
    descend(parameters, rate);
  }
  return losses;
}

// The mean of (w2 tanh(w1 x + b1) - y)^2, and a step of gradient descent, for rows x [n, 3], w1 [3, 4], b1 [4], w2 [4,
// 1].
double step_in_loops(const Values& x, const Values& y, Values* w1, Values* b1, Values* w2, double rate) {
  const size_t n = y.size();
  Values dw1(12), db1(4), dw2(4);
  double loss = 0;
  for (size_t r = 0; r < n; ++r) {
    double hidden[4];
    double out = 0;
    for (size_t j = 0; j < 4; ++j) {
      double z = (*b1)[j];
      for (size_t k = 0; k < 3; ++k) z += x[r * 3 + k] * (*w1)[k * 4 + j];
      hidden[j] = std::tanh(z);
      out += hidden[j] * (*w2)[j];
    }
    const double difference = out - y[r];
    loss += difference * difference / static_cast<double>(n);
    for (size_t j = 0; j < 4; ++j) {
      const double d = 2 * difference / static_cast<double>(n);
      dw2[j] += d * hidden[j];
      const double dz = d * (*w2)[j] * (1 - hidden[j] * hidden[j]);
      db1[j] += dz;
      for (size_t k = 0; k < 3; ++k) dw1[k * 4 + j] += dz * x[r * 3 + k];
    }
  }
  const auto descend_by = [rate](Values* values, const Values& slopes) {
    for (size_t i = 0; i < values->size(); ++i) (*values)[i] -= rate * slopes[i];
  };
  descend_by(w1, dw1);
  descend_by(b1, db1);
  descend_by(w2, dw2);
  return loss;
}

TEST(Training, OfTwoLayersEqualsPlainLoops) {
  const Tensor x = random_tensor({16, 3}, 20, -1, 1);
  const Tensor y = sin(sum(x, 1, true) * 2);
  const TensorList parameters = parameters_of({{3, 4}, {4}, {4, 1}}, 0.7);
  Values w1 = numbers(parameters[0]), b1 = numbers(parameters[1]), w2 = numbers(parameters[2]);
  const Values losses = train(parameters, 200, 0.2, [&](const TensorList& p) {
    return mean(square(matmul(tanh(matmul(x, p[0]) + p[1]), p[2]) - y));
  });
  const Values xs = numbers(x), ys = numbers(y);
  for (size_t step = 0; step < losses.size(); ++step) {
    ASSERT_NEAR(losses[step], step_in_loops(xs, ys, &w1, &b1, &w2, 0.2), 1e-9) << "step " << step;
  }
  EXPECT_LT(losses.back(), 0.2 * losses.front());
}

// Pictures of a horizontal or vertical bar; the net classifies them.
TEST(Training, OfASmallConvolutionalNetLearnsBars) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(-0.2, 0.2);
  Values pixels(16 * 64);
  std::vector<int64_t> classes;
  for (double& pixel : pixels) pixel = noise(random);
  for (size_t picture = 0; picture < 16; ++picture) {
    const size_t at = random() % 8;
    for (size_t i = 0; i < 8; ++i) pixels[picture * 64 + (picture % 2 == 0 ? i * 8 + at : at * 8 + i)] += 1;
    classes.push_back(static_cast<int64_t>(picture % 2));
  }
  const Tensor x = with_values(pixels, {16, 1, 8, 8});
  const Tensor labels = Tensor::from<int64_t>(classes, {16, 1});
  const TensorList parameters = parameters_of({{4, 1, 3, 3}, {4}, {6, 4, 3, 3}, {6}, {2, 6}, {2}}, 0.4);
  const auto loss_of = [&](const TensorList& p) {
    Tensor h = max_pool(relu(conv(x, p[0], p[1], 1, 1)), 2);
    h = relu(conv(h, p[2], p[3], 1, 1));
    const Tensor scores = linear(mean(h, {2, 3}), p[4], p[5]);
    return -mean(gather(log_softmax(scores, 1), 1, labels));
  };
  const Values losses = train(parameters, 120, 0.3, loss_of);
  EXPECT_LT(losses.back(), 0.1) << "it began at " << losses.front();
}

// One block with attention, norms and an MLP learns which token came first.
TEST(Training, OfATransformerBlockLearnsTheFirstToken) {
  std::mt19937 random(5);
  std::vector<int64_t> tokens;
  std::vector<int64_t> first;
  for (int sequence = 0; sequence < 12; ++sequence) {
    for (int t = 0; t < 5; ++t) tokens.push_back(static_cast<int64_t>(random() % 6));
    for (int t = 0; t < 5; ++t) first.push_back(tokens[static_cast<size_t>(sequence) * 5]);
  }
  const Tensor indices = Tensor::from<int64_t>(tokens, {12, 5});
  const Tensor labels = Tensor::from<int64_t>(first, {12, 5, 1});
  const TensorList parameters =
      parameters_of({{6, 8}, {5, 8}, {8}, {24, 8}, {8, 8}, {8}, {16, 8}, {16}, {8, 16}, {8}, {6, 8}}, 0.5);
  const auto loss_of = [&](const TensorList& p) {
    Tensor x = embedding(p[0], indices) + p[1];
    const TensorList qkv = chunk(linear(rms_norm(x, 8, p[2]), p[3]), 3, -1);
    const auto heads = [](const Tensor& t) { return transpose(reshape(t, {12, 5, 2, 4}), 1, 2); };
    const Tensor attended = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, true);
    x = x + linear(reshape(transpose(attended, 1, 2), {12, 5, 8}), p[4]);
    x = x + linear(gelu(linear(layer_norm(x, 8, p[5]), p[6], p[7])), p[8], p[9]);
    return -mean(gather(log_softmax(linear(x, p[10]), -1), -1, labels));
  };
  const Values losses = train(parameters, 150, 0.3, loss_of);
  EXPECT_LT(losses.back(), 0.3 * losses.front()) << "it began at " << losses.front();
}

}  // namespace
}  // namespace tenon
