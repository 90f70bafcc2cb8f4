// Whole training steps that are recorded once and used for every batch size: gradients keep sizes open.
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

struct Step {
  const char* name;
  std::vector<Dims> shapes;  // the shapes of the parameters
  std::function<TensorList(int64_t batch)> inputs;
  std::function<Tensor(const TensorList& parameters, const TensorList& inputs)> loss;
};

std::ostream& operator<<(std::ostream& out, const Step& step) { return out << step.name; }

Tensor classes(const Dims& dims, int64_t count) {
  std::mt19937 random(7);
  std::vector<int64_t> numbers(static_cast<size_t>(element_count(dims)));
  for (int64_t& number : numbers) number = static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  return Tensor::from<int64_t>(numbers, dims);
}

Step two_layers() {
  return {"TwoLayers",
          {{3, 4}, {4}, {4, 1}},
          [](int64_t batch) {
            return TensorList{random_tensor({batch, 3}, 20), random_tensor({batch, 1}, 21)};
          },
          [](const TensorList& p, const TensorList& in) {
            return mean(square(matmul(tanh(matmul(in[0], p[0]) + p[1]), p[2]) - in[1]));
          }};
}

Step convolutional() {
  return {"Convolutional",
          {{4, 1, 3, 3}, {4}, {6, 4, 3, 3}, {6}, {2, 6}, {2}},
          [](int64_t batch) {
            return TensorList{random_tensor({batch, 1, 8, 8}, 20), classes({batch, 1}, 2)};
          },
          [](const TensorList& p, const TensorList& in) {
            Tensor h = max_pool(relu(conv(in[0], p[0], p[1], 1, 1)), 2);
            h = relu(conv(h, p[2], p[3], 1, 1));
            return -mean(gather(log_softmax(linear(mean(h, {2, 3}), p[4], p[5]), 1), 1, in[1]));
          }};
}

Step transformer() {
  return {"Transformer",
          {{6, 8}, {5, 8}, {8}, {24, 8}, {8, 8}, {8}, {16, 8}, {16}, {8, 16}, {8}, {6, 8}},
          [](int64_t batch) {
            return TensorList{classes({batch, 5}, 6), classes({batch, 5, 1}, 6)};
          },
          [](const TensorList& p, const TensorList& in) {
            Tensor x = embedding(p[0], in[0]) + p[1];
            const TensorList qkv = chunk(linear(rms_norm(x, 8, p[2]), p[3]), 3, -1);
            const auto heads = [](const Tensor& t) { return transpose(reshape(t, {-1, 5, 2, 4}), 1, 2); };
            const Tensor attended = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, true);
            x = x + linear(reshape(transpose(attended, 1, 2), {-1, 5, 8}), p[4]);
            x = x + linear(gelu(linear(layer_norm(x, 8, p[5]), p[6], p[7])), p[8], p[9]);
            return -mean(gather(log_softmax(linear(x, p[10]), -1), -1, in[1]));
          }};
}

class OpenSteps : public ::testing::TestWithParam<Step> {};

TEST_P(OpenSteps, AreRecordedOnceForEveryBatchSize) {
  const Step& step = GetParam();
  const auto parameters = [&] {
    TensorList made;
    for (const Dims& dims : step.shapes) {
      const NoGrad scope;
      made.push_back(((random_tensor(dims, static_cast<uint32_t>(made.size()) + 1) - 1.25) * 0.5).requires_grad_());
    }
    return made;
  };
  const TensorList eager = parameters(), compiled = parameters();
  const auto train = [&](const TensorList& leaves, const TensorList& inputs) {
    const Tensor loss = step.loss(leaves, inputs);
    descend(loss, leaves, 0.1);
    return loss;
  };
  auto program =
      compile([&](const TensorList& inputs) { return train(compiled, inputs); }, {.name = "train", .exact = true});
  for (int64_t batch : {16, 16, 5, 9, 16, 2, 9}) {
    const TensorList inputs = step.inputs(batch);
    EXPECT_EQ(elements(program(inputs)), elements(train(eager, inputs))) << "batch " << batch;
  }
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(elements(compiled[i]), elements(eager[i])) << "parameter " << i;
  EXPECT_EQ(program.stats().recordings, 1u);
  EXPECT_EQ(program.stats().eager, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, OpenSteps, ::testing::Values(two_layers(), convolutional(), transformer()),
                         [](const ::testing::TestParamInfo<Step>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon
