// Passes: the ops before and after, idempotence, equal results; each also on sizes that are symbols.
#include "core/graph/passes/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/graph/regions/control_flow.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/functors/positions.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "tests/unit/graph/random_program.h"
#include "tests/unit/tensor/expect_error.h"

namespace tenon::graph {
namespace {

std::string wrong_in(Graph& graph) {
  const Status status = verify(graph);
  return status.ok() ? "" : status.message();
}

Graph record(const TensorList& inputs, const Program& code) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
  Graph graph = recorder.finish(code(values));
  EXPECT_EQ(wrong_in(graph), "");
  return graph;
}

// Bytes that a run of `graph`, whose nodes run one by one, allocates for inner values.
uint64_t planned(const Graph& graph) { return planned_memory(prepare(graph, {.fuse = false})).peak; }

// The names of the ops, in order: "matmul add relu".
std::string ops_of(const Graph& graph) {
  std::string text;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    text += (text.empty() ? "" : " ") + std::string(graph.node(id).op->name);
    for (const Epilogue& epilogue : graph.node(id).epilogues) text += fmt::format("+{}", epilogue.op->name);
  }
  return text;
}

std::vector<std::vector<float>> results_of(const Graph& graph, const TensorList& inputs) {
  std::vector<std::vector<float>> results;
  for (const Tensor& result : run(prepare(graph), inputs)) results.push_back(cast(result, DType::f32).to_host<float>());
  return results;
}

void expect_close(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b, bool exact) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (size_t k = 0; k < a[i].size(); ++k) {
      if (exact) {
        ASSERT_TRUE(std::memcmp(&a[i][k], &b[i][k], sizeof(float)) == 0) << a[i][k] << " and " << b[i][k];
      } else {
        ASSERT_NEAR(a[i][k], b[i][k], 3e-5f * (1 + std::fabs(b[i][k])));
      }
    }
  }
}

// Expects that `pass` makes the ops `after`, changes nothing the second time, and keeps the results.
void expect_pass(std::string_view pass, const TensorList& inputs, const Program& code, const std::string& after,
                 const PassOptions& options = {}) {
  Graph graph = record(inputs, code);
  const auto before = results_of(graph, inputs);
  const Pass& row = find_pass(pass);
  row.run(&graph, options);
  EXPECT_EQ(wrong_in(graph), "");
  EXPECT_EQ(ops_of(graph), after);
  const std::string once = print(graph);
  row.run(&graph, options);
  EXPECT_EQ(print(graph), once) << "the pass is not idempotent";
  expect_close(results_of(graph, inputs), before, row.bound.empty());
}

// Quantised numbers and their real values: a tensor as in a quantised model.
Tensor scale_of(double value) { return full({}, Scalar(value), DType::f32); }
Tensor zero_of(int64_t value, DType dtype) { return full({}, Scalar(value), dtype); }
Tensor as_numbers(const Tensor& x, double scale, int64_t zero, DType dtype = DType::u8) {
  return quantize_linear(x, scale_of(scale), zero_of(zero, dtype), 0, 0, dtype);
}
Tensor as_reals(const Tensor& q, double scale, int64_t zero) {
  return dequantize_linear(q, scale_of(scale), zero_of(zero, q.dtype()));
}
Tensor random_numbers(const Dims& dims, uint32_t seed, DType dtype) {
  return as_numbers(random_tensor(dims, seed), 1.0 / 64, dtype == DType::u8 ? 128 : 0, dtype);
}
// An i8 weight whose scale differs along `dim`; it is not an input, so it is a constant.
Tensor weight_of(const Dims& dims, uint32_t seed, int64_t dim) {
  const Tensor scale = add(abs(random_tensor({dims[static_cast<int32_t>(dim)]}, seed)), Scalar(0.5));
  const Tensor zeros = full({dims[static_cast<int32_t>(dim)]}, Scalar(int64_t{0}), DType::i8);
  return dequantize_linear(random_numbers(dims, seed, DType::i8), scale, zeros, dim);
}

TEST(Passes, ProductsOfDequantisedTensorsComputeOnNumbers) {
  expect_pass(
      "quantised", {random_numbers({2, 5, 6}, 1, DType::u8)},
      [](const TensorList& x) -> TensorList {
        const Tensor product = add(matmul(as_reals(x[0], 0.25, 128), weight_of({6, 4}, 2, 1)), random_tensor({4}, 3));
        return {as_numbers(product, 4, 120),
                matmul(as_reals(x[0], 0.25, 128), transpose(weight_of({4, 6}, 4, 0), 0, 1))};
      },
      "quantized_matmul permute quantized_matmul");
}

TEST(Passes, ReluOfAQuantisedConvolutionIsItsSaturation) {
  const auto code = [](int64_t zero) {
    return [zero](const TensorList& x) -> TensorList {
      const Tensor y = conv(as_reals(x[0], 0.25, 128), weight_of({4, 3, 3, 3}, 2, 0), random_tensor({4}, 3), 1, 1);
      return {as_numbers(relu(y), 2, zero)};
    };
  };
  const TensorList in{random_numbers({2, 3, 6, 5}, 1, DType::u8)};
  expect_pass("quantised", in, code(0), "quantized_conv");
  expect_pass("quantised", in, code(9), "quantized_conv relu quantize_linear");
}

TEST(Passes, QuantisedConvolutionsInGroupsComputeOnNumbers) {
  expect_pass(
      "quantised", {random_numbers({2, 6, 6, 5}, 1, DType::u8)},
      [](const TensorList& x) -> TensorList {
        const Tensor a = as_reals(x[0], 0.25, 128);
        return {as_numbers(conv(a, weight_of({6, 1, 3, 3}, 2, 0), random_tensor({6}, 3), 1, 1, 1, 6), 2, 100),
                as_numbers(conv(a, weight_of({4, 3, 3, 3}, 4, 0), {}, 1, 1, 1, 2), 4, 120)};
      },
      "quantized_conv quantized_conv");
}

TEST(Passes, SumsAndMovesOfDequantisedTensorsComputeOnNumbers) {
  expect_pass(
      "quantised", {random_numbers({2, 3, 4, 4}, 1, DType::u8), random_numbers({2, 3, 4, 4}, 2, DType::u8)},
      [](const TensorList& x) -> TensorList {
        const Tensor a = as_reals(x[0], 0.25, 128), b = as_reals(x[1], 0.5, 100);
        return {as_numbers(relu(add(a, b)), 1, 0), as_numbers(permute(a, {0, 2, 3, 1}), 0.25, 128),
                as_numbers(max_pool(b, 2), 0.5, 100), as_numbers(mul(a, b), 8, 7)};
      },
      "quantized_add permute max_pool quantized_mul");
}

TEST(Passes, WhatIsReadAsARealOrScaledAnewStaysReal) {
  expect_pass(
      "quantised", {random_numbers({2, 3, 4, 4}, 1, DType::u8)},
      [](const TensorList& x) -> TensorList {
        const Tensor a = as_reals(x[0], 0.25, 128), sum = add(a, a);
        return {as_numbers(sum, 1, 0), sum, as_numbers(permute(a, {0, 2, 3, 1}), 0.5, 128)};
      },
      "dequantize_linear add quantize_linear permute quantize_linear");
}

TEST(Passes, EqualNodesBecomeOne) {
  const TensorList in{random_tensor({3, 4}, 1), random_tensor({3, 4}, 2)};
  expect_pass(
      "common", in,
      [](const TensorList& x) -> TensorList {
        const Tensor a = add(exp(x[0]), x[1]), b = add(exp(x[0]), x[1]);
        return {mul(a, b), add(x[1], exp(x[0])), mul(a, Scalar(2.0)), mul(b, Scalar(3.0))};
      },
      "exp add mul add mul mul");
}

TEST(Passes, WhatChangesNothingGoes) {
  expect_pass(
      "redundant", {random_tensor({3, 4}, 1)},
      [](const TensorList& x) -> TensorList {
        const Tensor twice = permute(permute(x[0], {1, 0}), {1, 0});
        const Tensor shaped = reshape(reshape(reshape(exp(twice), {12}), {2, 6}), {3, 4});
        return {mul(clone(shaped), Scalar(1.0)),
                relu(permute(permute(reshape(x[0], {3, 2, 2}), {2, 0, 1}), {0, 2, 1}))};
      },
      "exp reshape permute relu");
}

TEST(Passes, NeutralElementsAndWholePartsGo) {
  expect_pass(
      "redundant", {random_tensor({3, 4}, 1)},
      [](const TensorList& x) -> TensorList {
        const Tensor same = pad(slice(sub(add(x[0], Scalar(-0.0)), Scalar(0.0)), 1, 0, 4), {0, 0, 0, 0});
        return {relu(same), pad(slice(x[0], 1, 1), {0, 1}), sub(x[0], Scalar(-0.0)),
                add(cast(x[0], DType::i64), Scalar(int64_t{0}))};
      },
      "relu slice pad sub cast");
}

TEST(Passes, CastsThatLoseNothingAreJoined) {
  expect_pass(
      "redundant", {random_tensor({3, 4}, 1)},
      [](const TensorList& x) -> TensorList {
        const Tensor narrow = cast(x[0], DType::f16);
        return {relu(cast(cast(x[0], DType::f64), DType::f32)), cast(cast(narrow, DType::f32), DType::f16),
                cast(cast(cast(gt(x[0], Scalar(0.0)), DType::i32), DType::i64), DType::f32)};
      },
      "cast relu cast cast gt cast");
}

TEST(Passes, MinusZeroStays) {
  expect_pass(
      "redundant", {Tensor::from<float>(std::vector<float>{-0.0f, 1.0f}, {2})},
      [](const TensorList& x) -> TensorList { return {add(x[0], Scalar(0.0))}; }, "add");
}

TEST(Passes, ConstantsAreComputedOnce) {
  const Tensor x = random_tensor({4}, 1), w = random_tensor({4}, 2);
  Graph graph = record({x}, [&](const TensorList& in) -> TensorList { return {mul(in[0], in[0])}; });
  Node node;
  node.op = graph.node(graph.first()).op;
  const ValueId constant = graph.add_constant(w);
  node.inputs = {constant, constant};
  const NodeId square = graph.insert(graph.first(), node);
  graph.set_inputs(graph.last(), {graph.inputs()[0], graph.node(square).results[0]});
  fold_constants(&graph, {});
  EXPECT_EQ(ops_of(graph), "mul");
  expect_close(results_of(graph, {x}), {mul(x, mul(w, w)).to_host<float>()}, true);
}

Tensor norm_of(const Tensor& x, const Tensor& weight, const Tensor& bias, bool by_pow) {
  const Tensor centred = sub(x, mean(x, {-1}, true));
  const Tensor squared = by_pow ? pow(centred, Scalar(2.0)) : mul(centred, centred);
  const Tensor y = div(centred, sqrt(add(mean(squared, {-1}, true), Scalar(1e-3))));
  return add(mul(y, weight), bias);
}

TEST(Passes, ALayerNormIsOneNode) {
  const TensorList in{random_tensor({3, 8}, 1), random_tensor({8}, 2), random_tensor({8}, 3)};
  for (bool by_pow : {true, false}) {
    expect_pass(
        "layer_norm", in, [&](const TensorList& x) -> TensorList { return {norm_of(x[0], x[1], x[2], by_pow)}; },
        "layer_norm");
  }
}

TEST(Passes, ALayerNormWhoseInsideIsReadStays) {
  const TensorList in{random_tensor({3, 8}, 1)};
  const Program code = [](const TensorList& x) -> TensorList {
    const Tensor centred = sub(x[0], mean(x[0], {-1}, true));
    const Tensor root = sqrt(add(mean(square(centred), {-1}, true), Scalar(1e-3)));
    return {div(centred, root), root};
  };
  expect_pass("layer_norm", in, code, "mean sub square mean add sqrt div");
}

TEST(Passes, GeluInFiveNodesIsOne) {
  const TensorList in{random_tensor({3, 8}, 1)};
  expect_pass(
      "gelu", in,
      [](const TensorList& x) -> TensorList {
        return {mul(mul(x[0], add(erf(div(x[0], Scalar(std::sqrt(2.0)))), Scalar(1.0))), Scalar(0.5))};
      },
      "gelu");
  expect_pass(
      "gelu", in,
      [](const TensorList& x) -> TensorList {
        return {mul(mul(x[0], Scalar(0.5)), add(Scalar(1.0), erf(mul(x[0], Scalar(std::sqrt(0.5))))))};
      },
      "gelu");
  expect_pass(
      "gelu", in,
      [](const TensorList& x) -> TensorList {
        return {mul(mul(x[0], add(erf(div(x[0], Scalar(1.5))), Scalar(1.0))), Scalar(0.5))};
      },
      "div erf add mul mul");
}

TEST(Passes, SquaresInverseRootsAndSiluAreOneOp) {
  expect_pass(
      "cheaper", {random_tensor({3, 4}, 1), random_tensor({3, 1}, 2)},
      [](const TensorList& x) -> TensorList {
        const Tensor root = sqrt(add(pow(x[0], Scalar(2.0)), Scalar(0.5)));
        return {div(Scalar(1.0), root), mul(x[0], sigmoid(x[0])), mul(sigmoid(x[0]), x[1]), pow(x[0], Scalar(3.0)),
                div(Scalar(2.0), root)};
      },
      "square add sqrt rsqrt silu sigmoid mul pow div");
}

// The query, the key and the value in one tensor. Indices that are unsorted, counted from the end or out of range
// remain gathers.
TEST(Passes, GathersOfKnownPlacesInARowAreViews) {
  const auto places = [](std::vector<int64_t> all, const Dims& dims) { return Tensor::from<int64_t>(all, dims); };
  expect_pass(
      "slices", {random_tensor({3, 2, 5}, 1), cast(random_tensor({2}, 2), DType::i64)},
      [&](const TensorList& x) -> TensorList {
        return {gather_slices(x[0], 0, places({2}, {})),        gather_slices(x[0], -1, places({1, 2, 3}, {3})),
                gather_slices(x[0], 0, places({0, 2}, {2})),    gather_slices(x[0], 0, places({-1}, {})),
                gather_slices(x[0], 1, places({0, 1}, {1, 2})), gather_slices(x[0], 1, mul(x[1], Scalar(int64_t{0})))};
      },
      "select slice gather_slices gather_slices gather_slices mul gather_slices");
}

TEST(Passes, ProductsTakeWhatFollows) {
  const TensorList in{random_tensor({4, 6}, 1), random_tensor({6, 5}, 2), random_tensor({5}, 3),
                      random_tensor({4, 5}, 4)};
  expect_pass(
      "epilogues", in,
      [](const TensorList& x) -> TensorList {
        return {relu(add(add(matmul(x[0], x[1]), x[2]), x[3])), clamp(matmul(x[0], x[1]), Scalar(-0.5), Scalar(0.75))};
      },
      "matmul+add+add+relu matmul+maximum+minimum");
  expect_pass(
      "epilogues", in,
      [](const TensorList& x) -> TensorList {
        const Tensor y = matmul(x[0], x[1]);
        return {relu(y), y};
      },
      "matmul relu");
}

TEST(Passes, AProductLeavesASumToTheKernelThatComputesTheOtherPart) {
  const TensorList in{random_tensor({4, 6}, 1), random_tensor({6, 5}, 2), random_tensor({4, 5}, 3)};
  const auto taken = [&](const Program& code, bool kernels) {
    Graph graph = record(in, code);
    PassOptions options;
    options.fuse = kernels;
    take_epilogues(&graph, options);
    return ops_of(graph);
  };
  const Program decay = [](const TensorList& x) -> TensorList {
    const Tensor other = mul(x[2], Scalar(0.9));
    return {add(other, matmul(x[0], x[1]))};
  };
  EXPECT_EQ(taken(decay, true), "mul matmul add");
  EXPECT_EQ(taken(decay, false), "mul matmul+add");
  const Program read_elsewhere = [](const TensorList& x) -> TensorList {
    const Tensor other = mul(x[2], Scalar(0.9));
    return {add(other, matmul(x[0], x[1])), other};
  };
  EXPECT_EQ(taken(read_elsewhere, true), "mul matmul+add");
}

TEST(Passes, AProductTakesTheScaleOfScores) {
  const TensorList in{random_tensor({2, 4, 6}, 1), random_tensor({2, 6, 5}, 2), random_tensor({5}, 3)};
  expect_pass(
      "epilogues", in,
      [](const TensorList& x) -> TensorList {
        return {div(matmul(x[0], x[1]), Scalar(8.0)), add(mul(Scalar(0.3), matmul(x[0], x[1])), x[2]),
                div(Scalar(8.0), matmul(x[0], x[1]))};
      },
      "matmul+mul matmul+mul add matmul div");
}

TEST(Passes, ProductsOfOneRowByConstantsAreOne) {
  const TensorList in{random_tensor({1, 1, 6}, 1)};
  const Tensor q = random_tensor({6, 5}, 2), k = random_tensor({6, 2}, 3), v = random_tensor({6, 2}, 4);
  expect_pass(
      "merge", in,
      [&](const TensorList& x) -> TensorList {
        return {matmul(x[0], q), relu(matmul(x[0], k)), matmul(x[0], v)};
      },
      "matmul slice slice slice relu");
  const Tensor a = random_tensor({5}, 5), b = random_tensor({2}, 6);
  expect_pass(
      "merge", in,
      [&](const TensorList& x) -> TensorList {
        return {relu(add(matmul(x[0], q), a)), add(b, matmul(x[0], k)), matmul(x[0], v)};
      },
      "matmul add slice slice relu matmul");
}

TEST(Passes, ProductsOfManyRowsOrOfUnknownMatricesStay) {
  const Tensor q = random_tensor({6, 5}, 2), k = random_tensor({6, 2}, 3);
  expect_pass(
      "merge", {random_tensor({1, 2, 6}, 1)},
      [&](const TensorList& x) -> TensorList {
        return {matmul(x[0], q), matmul(x[0], k)};
      },
      "matmul matmul");
  expect_pass(
      "merge", {random_tensor({1, 6}, 1), random_tensor({6, 5}, 4)},
      [&](const TensorList& x) -> TensorList {
        return {matmul(x[0], q), matmul(x[0], x[1])};
      },
      "matmul matmul");
}

TEST(Passes, AProductTakesFourEpilogues) {
  const TensorList in{random_tensor({4, 4}, 1)};
  expect_pass(
      "epilogues", in,
      [](const TensorList& x) -> TensorList { return {tanh(relu(tanh(relu(tanh(matmul(x[0], x[0]))))))}; },
      "matmul+tanh+relu+tanh+relu tanh");
}

TEST(Passes, AProductTakesAResidualAfterAnActivation) {
  const TensorList in{random_tensor({96, 96}, 1)};
  expect_pass(
      "epilogues", in, [](const TensorList& x) -> TensorList { return {add(x[0], tanh(matmul(x[0], x[0])))}; },
      "matmul+tanh+add");
}

// A device may have a fast kernel for the product alone, and only a loop that is not optimised with its epilogues.
TEST(Passes, NoEpilogueMakesAProductPlain) {
  const Program block = [](const TensorList& x) -> TensorList { return {add(x[0], relu(matmul(x[0], x[0])))}; };
  for (const DType dtype : {DType::f32, DType::f64}) {
    const TensorList in{cast(random_tensor({96, 96}, 1), dtype)};
    Graph graph = record(in, block);
    take_epilogues(&graph, {});
    ExecutionScope scope;
    run(prepare(graph, {.fuse = false}), in);
    for (const ExecutionEntry& entry : scope.take()) EXPECT_NE(entry.implementation, "plain") << dtype_name(dtype);
  }
}

TEST(Passes, AnUnknownPassIsAnErrorThatNamesTheNearest) {
  const Status status = testing::error_of([] { find_pass("epilogue"); });
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_NE(status.message().find("'epilogue', perhaps 'epilogues'"), std::string::npos) << status.message();
}

// The second rung of the ladder for a product and its epilogues, on any device.
TEST(Passes, EpiloguesAreAlsoOps) {
  const TensorList in{random_tensor({4, 6}, 1), random_tensor({6, 5}, 2), random_tensor({5}, 3),
                      random_tensor({4, 5}, 4)};
  const Tensor expected =
      clamp(leaky_relu(add(add(matmul(in[0], in[1]), in[2]), in[3]), 0.3), Scalar(-0.5), std::nullopt);
  Graph graph = record(in, [](const TensorList& x) -> TensorList {
    return {maximum(leaky_relu(add(add(matmul(x[0], x[1]), x[2]), x[3]), 0.3), Scalar(-0.5))};
  });
  take_epilogues(&graph, {});
  ASSERT_EQ(ops_of(graph), "matmul+add+add+leaky_relu maximum");
  const Node& node = graph.node(graph.first());
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : in) inputs.push_back(&tensor);
  Tensor result;
  OpCall call;
  call.op = node.op;
  call.inputs = inputs;
  call.scalars = node.scalars;
  call.epilogues = node.epilogues;
  call.outputs = {&result, 1};
  ASSERT_TRUE(ops::has_decomposition(call));
  ops::decompose(call);
  expect_close({maximum(result, Scalar(-0.5)).to_host<float>()}, {expected.to_host<float>()}, false);
}

std::vector<std::vector<float>> results_at(const Graph& graph, const Dims& dims) {
  symbolic::Values sizes(graph.arena());
  throw_if_error(sizes.bind(0, dims[0]));
  throw_if_error(sizes.bind(1, dims[1]));
  std::vector<std::vector<float>> results;
  const Executable program = prepare(graph, &sizes);
  for (const Tensor& result : run(program, TensorList{random_tensor(dims, 7)})) {
    results.push_back(result.to_host<float>());
  }
  return results;
}

Tensor repeated(const Tensor& x, int64_t heads) {
  const Tensor once = unsqueeze(x, 2);
  const int64_t batch = x.dims()[0], groups = x.dims()[1], rows = x.dims()[2], size = x.dims()[3];
  return reshape(expand(once, {batch, groups, heads, rows, size}), {batch, groups * heads, rows, size});
}

TEST(Passes, HeadsThatShareKeysAndValuesAreRows) {
  const TensorList in{random_tensor({2, 6, 3, 4}, 1), random_tensor({2, 2, 5, 4}, 2), random_tensor({2, 2, 5, 4}, 3),
                      random_tensor({2, 1, 3, 4}, 4)};
  expect_pass(
      "groups", in,
      [](const TensorList& x) -> TensorList {
        const Tensor scores = matmul(x[0], permute(repeated(x[1], 3), {0, 1, 3, 2}));
        const Tensor weights = softmax(scores, 3);
        return {matmul(weights, repeated(x[2], 3))};
      },
      "unsqueeze reshape squeeze permute matmul reshape softmax unsqueeze reshape squeeze matmul reshape");
  expect_pass(
      "groups", in,
      [](const TensorList& x) -> TensorList {
        return {matmul(x[3], permute(repeated(x[1], 3), {0, 1, 3, 2}))};
      },
      "unsqueeze expand cast reshape permute matmul");
}

TEST(Passes, AttentionOfProductsIsOneOp) {
  const TensorList in{random_tensor({2, 6, 3, 4}, 1), random_tensor({2, 5, 6, 4}, 2), random_tensor({2, 6, 5, 7}, 3),
                      random_tensor({2, 1, 1, 5}, 4)};
  // Queries and keys, each multiplied by a part of the scale before the product; the mask after it.
  expect_pass(
      "attention", in,
      [](const TensorList& x) -> TensorList {
        const Tensor turned = mul(permute(x[1], {0, 2, 3, 1}), Scalar(0.5));
        const Tensor scores = div(matmul(mul(x[0], Scalar(0.75)), turned), Scalar(0.5));
        return {matmul(softmax(add(x[3], scores), 3), x[2])};
      },
      "permute attention");
  // Masked scores become a number far below 0. The first row keeps all scores, the last row none. The first mask says
  // which scores are kept, the second one which are dropped.
  expect_pass(
      "attention", in,
      [](const TensorList& x) -> TensorList {
        const Tensor scores = mul(matmul(x[0], permute(x[1], {0, 2, 3, 1})), Scalar(0.5));
        const Tensor keep = gt(concat({ones({2, 1, 1, 5}), x[3], full({2, 1, 1, 5}, Scalar(-1))}, 2), Scalar(0));
        return {matmul(softmax(where(keep, scores, Scalar(-3.4e38)), 3), x[2])};
      },
      "concat gt logical_not cast mul permute attention");
  expect_pass(
      "attention", in,
      [](const TensorList& x) -> TensorList {
        const Tensor scores = matmul(x[0], permute(x[1], {0, 2, 3, 1}));
        return {matmul(softmax(masked_fill(scores, gt(x[3], Scalar(0)), Scalar(-1e30)), 3), x[2])};
      },
      "gt cast mul permute attention");
  // A list that is added to the queries is a separate value.
  expect_pass(
      "attention", in,
      [](const TensorList& x) -> TensorList {
        const Tensor query = add(x[0], ones({4}));
        return {matmul(softmax(matmul(query, permute(permute(x[1], {0, 2, 1, 3}), {0, 1, 3, 2})), 3), x[2])};
      },
      "add permute attention");
}

TEST(Passes, ScoresThatAreNoAttentionStay) {
  const TensorList in{random_tensor({2, 6, 3, 4}, 1), random_tensor({2, 6, 4, 5}, 2), random_tensor({2, 6, 5, 7}, 3),
                      random_tensor({6, 5, 7}, 4), random_tensor({2, 6, 3, 5}, 5)};
  const auto stays = [&](const Program& code, const std::string& ops) { expect_pass("attention", in, code, ops); };
  stays([](const TensorList& x) -> TensorList { return {matmul(softmax(matmul(x[0], x[1]), 2), x[2])}; },
        "matmul softmax matmul");
  // The mask is scaled too.
  stays(
      [](const TensorList& x) -> TensorList {
        return {matmul(softmax(mul(add(matmul(x[0], x[1]), x[4]), Scalar(0.5)), 3), x[2])};
      },
      "matmul add mul softmax matmul");
  // If no score of a row were kept, the row would have no weights.
  stays(
      [](const TensorList& x) -> TensorList {
        const Tensor keep = gt(x[4], Scalar(-10));
        return {matmul(softmax(where(keep, matmul(x[0], x[1]), Scalar(-INFINITY)), 3), x[2])};
      },
      "gt matmul where softmax matmul");
  // If the number is nearer to 0, replaced scores would count in a row that keeps no score.
  stays(
      [](const TensorList& x) -> TensorList {
        const Tensor keep = gt(x[4], Scalar(0));
        return {matmul(softmax(where(keep, matmul(x[0], x[1]), Scalar(-1e4)), 3), x[2])};
      },
      "gt matmul where softmax matmul");
  // Values broadcast.
  stays([](const TensorList& x) -> TensorList { return {matmul(softmax(matmul(x[0], x[1]), 3), x[3])}; },
        "matmul softmax matmul");
  // Another op reads the weights.
  stays(
      [](const TensorList& x) -> TensorList {
        const Tensor weights = softmax(matmul(x[0], x[1]), 3);
        return {matmul(weights, x[2]), weights};
      },
      "matmul softmax matmul");
}

TEST(Passes, AttentionOfSharedHeadsIsOneOp) {
  const TensorList in{random_tensor({2, 6, 4, 4}, 1), random_tensor({2, 2, 5, 4}, 2), random_tensor({2, 2, 5, 4}, 3)};
  const Program code = [](const TensorList& x) -> TensorList {
    const Tensor scores = mul(matmul(x[0], permute(repeated(x[1], 3), {0, 1, 3, 2})), Scalar(0.5));
    return {matmul(softmax(scores, 3), repeated(x[2], 3))};
  };
  Graph graph = record(in, code);
  const auto before = results_of(graph, in);
  join_groups(&graph, {});
  remove_redundant(&graph, {});
  find_attention(&graph, {});
  EXPECT_EQ(wrong_in(graph), "");
  EXPECT_EQ(ops_of(graph), "unsqueeze squeeze unsqueeze squeeze attention");
  expect_close(results_of(graph, in), before, false);
  // A few queries remain rows of a product.
  Graph few = record({random_tensor({2, 6, 3, 4}, 1), in[1], in[2]}, code);
  join_groups(&few, {});
  const std::string products = ops_of(few);
  find_attention(&few, {});
  EXPECT_EQ(ops_of(few), products);
}

// Attention whose batch, number of rows and number of keys are symbols.
TEST(Passes, HeadsThatShareKeysAreRowsAtAnySize) {
  const std::string text = R"(graph "s"
symbol S0 "axis 0 of input 'x'" in [1, ] hint 4
symbol S1 "axis 1 of input 'x'" in [1, ] hint 4
%1 = input f32[S0, S1, 8] on cpu:0
%2 = reshape(%1) {dims: [S0, S1, 4, 2]}
%3 = permute(%2) {axes: [0, 2, 1, 3]}
%4 = slice(%3) {axis: 1, start: 0, end: 2, step: 1}
%5 = unsqueeze(%4) {axes: [2]}
%6 = expand(%5) {dims: [S0, 2, 2, S1, 2]}
%7 = reshape(%6) {dims: [S0, 4, S1, 2]}
%8 = permute(%7) {axes: [0, 1, 3, 2]}
%9 = matmul(%3, %8)
return %9
)";
  Graph graph = parse(text);
  join_groups(&graph, {});
  EXPECT_EQ(wrong_in(graph), "");
  EXPECT_EQ(ops_of(graph), "reshape permute slice unsqueeze reshape squeeze permute matmul reshape");
  for (const Dims& dims : {Dims{1, 1, 8}, Dims{1, 5, 8}, Dims{3, 2, 8}}) {
    expect_close(results_at(parse(print(graph)), dims), results_at(parse(text), dims), false);
  }
}

TEST(Passes, ANodeStandsBeforeItsFirstReader) {
  const TensorList in{random_tensor({32, 32}, 1)};
  const auto code = [](const TensorList& x) -> TensorList {
    const Tensor late = exp(x[0]), later = mul(x[0], late);  // read only at the end
    return {add(add(sum(matmul(matmul(x[0], x[0]), x[0])), later), late)};
  };
  expect_pass("order", in, code, "matmul matmul sum exp mul add add");
  Graph graph = record(in, code);
  const uint64_t before = planned(graph);
  order_nodes(&graph, {});
  EXPECT_LT(planned(graph), before);
}

// If exchanges of ranks deliver an input, ops that do not depend on it should run before.
TEST(Passes, ANodeIsNotPutBehindOneThatMayWait) {
  const TensorList in{random_tensor({32, 32}, 1), Tensor::from({1.0F}, {}).to(DType::boolean)};
  const auto code = [](const TensorList& x) -> TensorList {
    const Tensor late = exp(x[0]);  // read only at the end
    const Tensor brought = cond(
        x[1], [&] { return TensorList{relu(x[0])}; }, [&] { return TensorList{neg(x[0])}; })[0];
    return {add(add(sum(matmul(matmul(brought, brought), x[0])), late), x[0])};
  };
  expect_pass("order", in, code, "exp cond matmul matmul sum add add");
}

TEST(Passes, NodesStayWhereNoOtherOrderTakesLess) {
  expect_pass(
      "order", {random_tensor({32, 32}, 1)},
      [](const TensorList& x) -> TensorList {
        const Tensor a = exp(x[0]), b = matmul(a, a);
        return {add(matmul(b, a), b)};
      },
      "exp matmul matmul add");
}

// The loss of classes and its gradient, as backward records them.
TensorList loss_of_classes(const Tensor& x, const Tensor& classes) {
  const Tensor index = unsqueeze(classes, {1}), logs = log_softmax(x, 1);
  const Tensor weight = full({x.dims()[0], 1}, Scalar(-0.25), DType::f32);
  const Tensor zeros = full(x.dims(), Scalar(0.0), DType::f32);
  const Tensor of_logs = functors::scatter_at("scatter", EP_GATHER_ELEMENTS, EP_SCATTER_ADD, zeros, 1, index, weight);
  return {sum(functors::gather_at(logs, 1, index)), sub(of_logs, mul(exp(logs), sum(of_logs, 1, true)))};
}

TensorList scores_and_classes(std::vector<int64_t> classes) {
  const auto rows = static_cast<int64_t>(classes.size());
  return {random_tensor({rows, 24}, 1), Tensor::from<int64_t>(std::move(classes), {rows})};
}

TEST(Passes, TheLossOfClassesComparesPlaces) {
  std::vector<int64_t> classes(8192);  // large enough that zeros are not computed while recording
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int64_t>(i * 7 % 24);
  const TensorList in = scores_and_classes(std::move(classes));
  Graph graph = record(in, [](const TensorList& x) -> TensorList { return loss_of_classes(x[0], x[1]); });
  const auto expected = results_of(graph, in);
  EXPECT_NE(ops_of(graph).find("scatter"), std::string::npos) << ops_of(graph);
  find_picked(&graph, {.fuse = true});
  // Compilers order the gradient of log_softmax in two ways.
  EXPECT_EQ(ops_of(graph).rfind("unsqueeze log_softmax full gather_slices eq where where sum ", 0), 0u)
      << ops_of(graph);
  EXPECT_EQ(ops_of(graph).find("scatter"), std::string::npos) << ops_of(graph);
  expect_close(results_of(graph, in), expected, false);
}

TEST(Passes, ThePlaceOfAClassMayCountFromTheEnd) {
  const TensorList in = scores_and_classes({-1, 5, -24, 0});
  const auto code = [](const TensorList& x) -> TensorList {
    return {functors::gather_at(log_softmax(x[0], 1), 1, unsqueeze(x[1], {1}))};
  };
  Graph graph = record(in, code);
  const auto expected = results_of(graph, in);
  find_picked(&graph, {.fuse = true});
  EXPECT_EQ(ops_of(graph).find("gather "), std::string::npos) << ops_of(graph);
  expect_close(results_of(graph, in), expected, false);
}

TEST(Passes, AClassThatIsNotThereIsAnErrorStill) {
  const TensorList in = scores_and_classes({3, 24});
  Graph graph = record(in, [](const TensorList& x) -> TensorList { return loss_of_classes(x[0], x[1]); });
  EXPECT_FALSE(testing::error_of([&] { results_of(graph, in); }).ok());
  find_picked(&graph, {.fuse = true});
  EXPECT_FALSE(testing::error_of([&] { results_of(graph, in); }).ok());
}

TEST(Passes, LogarithmsThatAreAResultArePickedAsBefore) {
  expect_pass("picked", scores_and_classes({3, 0, 23, 7}),
              [](const TensorList& x) -> TensorList {
                const Tensor logs = log_softmax(x[0], 1);
                return {logs, functors::gather_at(logs, 1, unsqueeze(x[1], {1}))};
              },
              "log_softmax unsqueeze gather", {.fuse = true});
}

// A graph text whose sizes are symbols: each pass decides only what the constraints decide.
constexpr const char* kSymbolic = R"(graph "s"
symbol S0 "axis 0 of input 'x'" in [2, ] hint 4
symbol S1 "axis 1 of input 'x'" in [2, ] hint 4
%1 = input f32[S0, S1, 8] on cpu:0
%2 = constant f32[8] on cpu:0 = 0000803f000000400000803f0000003f0000803f000000400000803f0000003f
%3 = reshape(%1) {dims: [S0*S1, 8]}
%4 = reshape(%3) {dims: [S0, S1, 8]}
%5 = slice(%4) {axis: 1, start: 0, end: S1, step: 1}
%6 = slice(%5) {axis: 1, start: 0, end: S0, step: 1}
%7 = permute(%1) {axes: [1, 0, 2]}
%8 = permute(%7) {axes: [1, 0, 2]}
%9 = mean(%8) {axes: 4, keep_dims: 1}
%10 = sub(%8, %9)
%11 = mul(%10, %10)
%12 = mean(%11) {axes: 4, keep_dims: 1}
%13 = add(%12, _) scalars (0, 0x1p-10)
%14 = sqrt(%13)
%15 = div(%10, %14)
%16 = mul(%15, %2)
%17 = permute(%16) {axes: [0, 2, 1]}
%18 = matmul(%16, %17)
%19 = div(%18, _) scalars (0, 0x1p+3)
%20 = full() scalars (0x1p+0) {dims: [S0, 8], dtype: f32} on cpu:0
%21 = full() scalars (0x1p+0) {dims: [S0, 8], dtype: f32} on cpu:0
%22 = full() scalars (0x1p+0) {dims: [S1, 8], dtype: f32} on cpu:0
%23 = add(%20, %21)
%24 = constant f32[8, 2] on cpu:0 = 0000803f000000400000803f0000003f0000803f000000400000803f0000003f0000803f000000400000803f0000003f0000803f000000400000803f0000003f
%25 = matmul(%1, %24)
%26 = matmul(%1, %24)
%27 = add(%25, %26)
return %6, %19, %23, %22, %27
)";

TEST(Passes, DecideOnSymbolsOnlyWhatIsDecided) {
  const std::map<std::string_view, std::string> expected{
      {"redundant", "slice mean sub mul mean add sqrt div mul permute matmul div full full full add matmul matmul add"},
      {"common",
       "reshape reshape slice slice permute permute mean sub mul mean add sqrt div mul permute matmul div full "
       "full add matmul add"},
      {"layer_norm",
       "reshape reshape slice slice permute permute layer_norm permute matmul div full full full add matmul matmul "
       "add"},
      {"merge",
       "reshape reshape slice slice permute permute mean sub mul mean add sqrt div mul permute matmul div full "
       "full full add matmul matmul add"},
      {"epilogues",
       "reshape reshape slice slice permute permute mean sub mul mean add sqrt div mul permute matmul+mul "
       "full full full add matmul matmul+add"},
      {"fuse", "reshape reshape slice slice fused permute matmul div full fused matmul matmul add"},
  };
  for (const Pass& pass : passes()) {
    Graph graph = parse(kSymbolic);
    remove_dead_code(&graph);
    const std::string before = ops_of(graph);
    pass.run(&graph, {});
    EXPECT_EQ(wrong_in(graph), "") << pass.name;
    const auto found = expected.find(pass.name);
    EXPECT_EQ(ops_of(graph), found == expected.end() ? before : found->second) << pass.name;
    const std::string once = print(graph);
    pass.run(&graph, {});
    EXPECT_EQ(print(graph), once) << pass.name;
    for (const Dims& dims : {Dims{2, 2, 8}, Dims{5, 3, 8}, Dims{3, 9, 8}}) {
      expect_close(results_at(graph, dims), results_at(parse(kSymbolic), dims), pass.bound.empty());
    }
  }
}

}  // namespace
}  // namespace tenon::graph
