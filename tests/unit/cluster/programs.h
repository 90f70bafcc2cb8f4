// Programs for the tests of plans.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <vector>

#include "core/cluster/plan.h"
#include "core/graph/recorder.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace tenon::cluster {

inline graph::Graph recorded(const std::vector<Dims>& inputs,
                             const std::function<TensorList(const TensorList&)>& function, DType dtype = DType::f32) {
  graph::Recorder recorder(Device("cpu"));
  const InterpreterScope scope(recorder);
  TensorList given;
  for (const Dims& dims : inputs) given.push_back(recorder.input(dtype, dims));
  return recorder.finish(function(given));
}

inline Program program_of(const graph::Graph& graph, const ProgramOptions& options = {}) {
  symbolic::Values sizes(graph.arena());
  return Program(graph, &sizes, options);
}

// Two products with a bias and a map between them. No number of ranks divides their sizes.
inline graph::Graph perceptron(int64_t rows = 7, int64_t width = 5, int64_t hidden = 6, int64_t out = 3) {
  return recorded({{rows, width}, {width, hidden}, {hidden}, {hidden, out}}, [](const TensorList& x) {
    const Tensor hidden_rows = relu(matmul(x[0], x[1]) + x[2]);
    return TensorList{matmul(hidden_rows, x[3])};
  });
}

// One head of attention with norms, views and sums.
inline graph::Graph attention() {
  return recorded({{2, 5, 6}, {6, 6}, {6, 6}, {6, 6}, {6}}, [](const TensorList& x) {
    const Tensor normed = rms_norm(x[0], {6}, x[4]);
    const auto heads = [&](const Tensor& weight) {
      return permute(reshape(matmul(normed, weight), {2, 5, 2, 3}), {0, 2, 1, 3});
    };
    const Tensor query = heads(x[1]), key = heads(x[2]), value = heads(x[3]);
    const Tensor scores = softmax(matmul(query, transpose(key, 2, 3)), 3);
    const Tensor seen = reshape(permute(matmul(scores, value), {0, 2, 1, 3}), {2, 5, 6});
    return TensorList{x[0] + seen, sum(seen, {1})};
  });
}

// A few ops in random order on square matrices.
inline graph::Graph random_graph(uint64_t seed, int32_t calls) {
  std::mt19937_64 generator(seed);
  const auto below = [&](size_t count) { return static_cast<size_t>(generator() % count); };
  return recorded({{4, 4}, {4, 4}}, [&](const TensorList& x) {
    TensorList made = x;
    for (int32_t i = 0; i < calls; ++i) {
      const Tensor one = made[made.size() - 1 - below(2)], other = made[below(made.size())];
      switch (below(5)) {
        case 0: made.push_back(matmul(one, other)); break;
        case 1: made.push_back(one + other); break;
        case 2: made.push_back(relu(one)); break;
        case 3: made.push_back(transpose(one, 0, 1)); break;
        default: made.push_back(softmax(one, 1)); break;
      }
    }
    return TensorList{made.back()};
  });
}

// The sizes of a decoder like Llama.
struct Decoder {
  int64_t layers = 2, width = 8192, heads = 64, groups = 8, inner = 28672, words = 32000, batch = 1024, length = 4096;
};

// Inputs: words [batch, length], the target words (if it trains), cosines, sines, the embeddings of the words, then per
// layer: norm, query, key, value, out, norm, gate, up, down; then a norm and the head. The result: logits, or the loss.
inline graph::Graph decoder(const Decoder& sizes, bool train) {
  graph::Recorder recorder(Device("cpu"));
  const InterpreterScope scope(recorder);
  const int64_t width = sizes.width, batch = sizes.batch, length = sizes.length;
  const int64_t head = width / sizes.heads;
  const auto weight = [&](const Dims& dims) { return recorder.input(DType::bf16, dims); };
  const Tensor words = recorder.input(DType::i64, {batch, length});
  const Tensor wanted = train ? recorder.input(DType::i64, {batch, length}) : Tensor();
  const Tensor cosines = weight({length, head / 2}), sines = weight({length, head / 2});
  Tensor x = embedding(weight({sizes.words, width}), words);
  const auto heads_of = [&](const Tensor& rows, int64_t heads) {
    return permute(reshape(rows, {batch, length, heads, head}), {0, 2, 1, 3});
  };
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const Tensor normed = rms_norm(x, {width}, weight({width}));
    const int64_t narrow = sizes.groups * head;
    const Tensor query = heads_of(matmul(normed, weight({width, width})), sizes.heads);
    const Tensor key = heads_of(matmul(normed, weight({width, narrow})), sizes.groups);
    const Tensor value = heads_of(matmul(normed, weight({width, narrow})), sizes.groups);
    const Tensor seen =
        attention(rotary_embedding(query, cosines, sines), rotary_embedding(key, cosines, sines), value, {}, {}, -1, 0);
    x = x + matmul(reshape(permute(seen, {0, 2, 1, 3}), {batch, length, width}), weight({width, width}));
    const Tensor again = rms_norm(x, {width}, weight({width}));
    const Tensor gate = silu(matmul(again, weight({width, sizes.inner})));
    const Tensor up = matmul(again, weight({width, sizes.inner}));
    x = x + matmul(gate * up, weight({sizes.inner, width}));
  }
  x = rms_norm(x, {width}, weight({width}));
  Tensor result = matmul(x, weight({width, sizes.words}));
  if (train) {
    result = cross_entropy(reshape(result, {batch * length, sizes.words}), reshape(wanted, {batch * length}));
  }
  return recorder.finish(std::vector<Tensor>{result});
}

// The parameters that training changes, as positions of inputs of the decoder.
inline std::vector<size_t> decoder_parameters(const Decoder& sizes) {
  std::vector<size_t> parameters;
  for (size_t i = 4; i < 4 + 1 + 9 * static_cast<size_t>(sizes.layers) + 2; ++i) parameters.push_back(i);
  return parameters;
}

inline Program decoder_program(const Decoder& sizes, bool train) {
  ProgramOptions options;
  options.train = train;
  if (train) options.parameters = decoder_parameters(sizes);
  return program_of(decoder(sizes, train), options);
}

// 4,096 accelerators.
inline constexpr const char* kBigCluster =
    "rank: 400 TFLOP/s, 3 TB/s, 80 GB, 4 us\nnode: 8 ranks, 5 us, 300 GB/s\ncluster: 512 nodes, 10 us, 50 GB/s";

// The layout of Megatron on a grid of data by tensor parallelism: products that widen are split by columns, products
// that narrow by rows, and each group of tensor parallelism has its rows of the batch.
inline std::map<ValueId, NdSbp> megatron(const Program& program, const Decoder& sizes, bool train) {
  constexpr global::Sbp S0 = global::Sbp::split(0), S1 = global::Sbp::split(1), B = global::Sbp::broadcast();
  std::map<ValueId, NdSbp> given;
  const std::vector<ValueId>& inputs = program.inputs();
  size_t at = 0;
  const auto next = [&](const NdSbp& sbp) { given.emplace(inputs[at++], sbp); };
  next({S0, B});
  if (train) next({S0, B});
  for (int i = 0; i < 3; ++i) next({B, B});
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    next({B, B});
    for (int i = 0; i < 3; ++i) next({B, S1});
    next({B, S0});
    next({B, B});
    for (int i = 0; i < 2; ++i) next({B, S1});
    next({B, S0});
  }
  next({B, B});
  next({B, S1});
  return given;
}

}  // namespace tenon::cluster
