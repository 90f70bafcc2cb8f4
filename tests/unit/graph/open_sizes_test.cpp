// Programs recorded with open sizes, run at others.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/autograd/autograd.h"
#include "core/autograd/interpreter.h"
#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/graph/text.h"
#include "core/ops/known_sizes.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sized_ops.h"
#include "core/ops/sizes.h"
#include "tests/unit/graph/open_recording.h"

namespace tenon::graph {
namespace {

using Code = OpenCode;

TEST(OpenSizes, ServeOtherSizesWithoutASecondRecording) {
  const Code code = [](const TensorList& in) -> TensorList { return {relu(sub(in[0], in[1])), exp(in[1])}; };
  const Graph graph = record_open({{7, 4}, {7, 4}}, code);
  EXPECT_EQ(guards(graph),
            "1 < S0 (input)\n1 < S1 (input)\n1 < S2 (input)\n1 < S3 (input)\nS0 == S2 (sub)\nS1 == S3 (sub)\n");
  for (const Dims& dims : {Dims{7, 4}, Dims{2, 3}, Dims{5, 16}, Dims{33, 2}, Dims{8, 8}}) {
    expect_serves(graph, {dims, dims}, code);
  }
}

TEST(OpenSizes, AReadOfDimsIsAGuardWithTheReaderAsContext) {
  const Code code = [](const TensorList& in) -> TensorList { return {mul(in[0], Scalar(in[0].dims()[0]))}; };
  const Graph graph = record_open({{7, 4}}, code);
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n1 < S1 (input)\nS0 == 7 (dims())\nS1 == 4 (dims())\n");
  expect_serves(graph, {{7, 4}}, code);
  EXPECT_EQ(why_not_for(graph, {{5, 4}}),
            "recording was made for S0 == 7 (dims()), but S0 (s0.0, axis 0 of input '0') is 5.");
}

// Reading one axis binds that axis and no other.
TEST(OpenSizes, AReadOfOneDimBindsThatAxisAlone) {
  const Code code = [](const TensorList& in) -> TensorList { return {mul(in[0], Scalar(in[0].dim(-1)))}; };
  const Graph graph = record_open({{7, 4}}, code);
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n1 < S1 (input)\nS1 == 4 (dim())\n");
  expect_serves(graph, {{3, 4}}, code);
}

TEST(OpenSizes, AReadOfElementsBindsTheirNumberAndNotTheDims) {
  const Code code = [](const TensorList& in) -> TensorList { return {div(in[0], Scalar(in[0].elements()))}; };
  const Graph graph = record_open({{6, 4}}, code);
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n1 < S1 (input)\nS0*S1 == 24 (elements())\n");
  expect_serves(graph, {{3, 8}}, code);
  EXPECT_NE(why_not_for(graph, {{5, 4}}), "");
}

// `contiguous` of a transposed tensor depends on sizes that need not be in its dims.
TEST(OpenSizes, AReadOfTheLayoutBindsWhatTheLayoutFollowsFrom) {
  const Code code = [](const TensorList& in) -> TensorList {
    const Tensor rows = narrow(in[0], 1, 0, 3);  // row-major only if in[0] has three columns
    return {mul(rows, Scalar(rows.contiguous() ? 2.0 : 3.0))};
  };
  const Graph graph = record_open({{4, 3}}, code);
  expect_serves(graph, {{4, 3}}, code);
  EXPECT_NE(why_not_for(graph, {{4, 5}}), "");
}

TEST(OpenSizes, SizesThatAreReadAsExpressionsStayOpen) {
  const Code code = [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    return {reshape(in[0], SizeList{s[1], s[0]}), reshape(in[0], SizeList{s[0] * s[1]})};
  };
  const Graph graph = record_open({{7, 4}}, code);
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n1 < S1 (input)\n");
  for (const Dims& dims : {Dims{3, 5}, Dims{4, 4}, Dims{2, 9}}) expect_serves(graph, {dims}, code);
}

TEST(OpenSizes, AxesOfOneNameAreOneSize) {
  Recorder recorder(Device::current());
  const std::string rows[] = {"rows", ""};
  Tensor a = recorder.input(DType::f32, {7, 4}, rows, "a");
  Tensor b = recorder.input(DType::f32, {7, 4}, rows, "b");
  Graph graph = [&] {
    InterpreterScope scope(recorder);
    return recorder.finish(TensorList{add(a, b)});
  }();
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n");
  symbolic::Values sizes(graph.arena());
  const TensorList given{Tensor::empty({5, 4}, DType::f32), Tensor::empty({6, 4}, DType::f32)};
  EXPECT_EQ(why_not(graph, given, &sizes),
            "Axis 0 of input 1 is 6, but it is S0 (rows, axis 0 of input 'a'), which is 5.");
}

TEST(OpenSizes, ANameWithTwoHintsIsRefused) {
  Recorder recorder(Device::current());
  const std::string rows[] = {"rows"};
  (void)recorder.input(DType::f32, {7}, rows, "a");
  try {
    (void)recorder.input(DType::f32, {6}, rows, "b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status().message(),
              "Axis 0 of input 'b' is 6, but 'rows' is 7 elsewhere (rows, axis 0 of input 'a').");
  }
}

TEST(OpenSizes, SizesOneAndZeroAreNumbersWithAGuard) {
  const Code code = [](const TensorList& in) -> TensorList { return {add(in[0], in[1])}; };
  const Graph graph = record_open({{1, 4}, {6, 4}}, code);
  expect_serves(graph, {{1, 3}, {5, 3}}, code);
  EXPECT_EQ(why_not_for(graph, {{5, 3}, {5, 3}}),
            "recording was made for S0 == 1 (input), but S0 (s0.0, axis 0 of input '0') is 5.");
}

TEST(OpenSizes, AValueOfAFinishedRecordingHasNoSizes) {
  Recorder recorder(Device::current());
  const std::string rows[] = {"rows"};
  Tensor a = recorder.input(DType::f32, {7}, rows, "a");
  (void)recorder.finish(TensorList{a});
  EXPECT_THROW((void)a.dims(), Error);
  EXPECT_THROW((void)sizes(a), Error);
  EXPECT_EQ(a.rank(), 1);
}

// Eager `reshape` copies at some sizes and not at others. So a later write is visible in the result or not.
TEST(OpenSizes, AWriteThroughAViewWhoseKindDependsOnSizesBindsThem) {
  const Code code = [](const TensorList& in) -> TensorList {
    Tensor x = clone(in[0]);
    Tensor flat = reshape(narrow(x, 1, 0, 3), {-1});
    fill_(flat, Scalar(0.0));
    return {x};
  };
  const Graph graph = record_open({{4, 3}}, code);
  expect_serves(graph, {{4, 3}}, code);
  EXPECT_NE(why_not_for(graph, {{4, 5}}), "");
}

TEST(OpenSizes, WritesThroughViewsServeOtherSizes) {
  const Code code = [](const TensorList& in) -> TensorList {
    Tensor x = clone(in[0]);
    Tensor row = select(x, 0, 1);
    fill_(row, Scalar(0.0));
    Tensor turned = transpose(x, 0, 1);
    Tensor part = narrow(turned, 0, 1, 2);
    add_(part, Scalar(1.0));
    return {x, turned};
  };
  const Graph graph = record_open({{4, 6}}, code);
  EXPECT_EQ(guards(graph).find("=="), std::string::npos) << guards(graph);
  for (const Dims& dims : {Dims{3, 5}, Dims{4, 4}, Dims{2, 9}}) expect_serves(graph, {dims}, code);
}

// A shape as exporters write it: Shape, Gather, Concat, Reshape.
TEST(OpenSizes, TensorsThatHoldSizesStayExpressions) {
  const Code code = [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    const Tensor shape = sized::ints(std::vector<SymDim>{s[0], s[1], s[2]}, {3});
    const Tensor rows = mul(narrow(shape, 0, 0, 1), narrow(shape, 0, 1, 1));
    const Tensor columns = sub(add(unsqueeze(select(shape, 0, 2), 0), Scalar(2)), Scalar(2));
    const Tensor target = concat({rows, columns});
    return {reshape(in[0], SizeList(sized::elements(target)))};
  };
  const Graph graph = record_open({{3, 4, 5}}, code);
  EXPECT_EQ(guards(graph).find("=="), std::string::npos) << guards(graph);
  for (const Dims& dims : {Dims{2, 5, 7}, Dims{6, 2, 2}, Dims{4, 4, 4}}) expect_serves(graph, {dims}, code);
}

TEST(OpenSizes, AReadOfElementsThatAreSizesIsAGuard) {
  const Code code = [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    const Tensor shape = sized::ints(std::vector<SymDim>{s[0], s[1]}, {2});
    return {mul(in[0], Scalar(select(shape, 0, 1).item().to_double()))};
  };
  const Graph graph = record_open({{3, 4}}, code);
  EXPECT_EQ(guards(graph), "1 < S0 (input)\n1 < S1 (input)\nS1 == 4 (the elements of a tensor of sizes)\n");
  expect_serves(graph, {{7, 4}}, code);
}

// They are then constants of the program, with the numbers of the hints.
TEST(OpenSizes, SizesThatMeetAValueAreBound) {
  const Code code = [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    return {mul(in[0], cast(sized::ints(std::vector<SymDim>{s[1]}, {1}), DType::f32))};
  };
  const Graph graph = record_open({{3, 4}}, code);
  expect_serves(graph, {{7, 4}}, code);
  EXPECT_NE(why_not_for(graph, {{7, 5}}), "");
}

TEST(OpenSizes, ATensorOfSizesIsNotWritten) {
  const Code code = [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    Tensor shape = sized::ints(std::vector<SymDim>{s[0], s[1]}, {2});
    Tensor first = narrow(shape, 0, 0, 1);
    fill_(first, Scalar(7));
    return {in[0]};
  };
  EXPECT_THROW((void)record_open({{3, 4}}, code), Error);
}

// A step of a decoder: x is [1, 4], the cache [2, n, 4]; ops after the attention do not depend on n.
TensorList decode(const TensorList& in, const Tensor& weight) {
  const Tensor x = matmul(tanh(in[0]), weight);
  const Tensor cache = concat(TensorList{in[1], expand(unsqueeze(x, 0), {2, 1, 4})}, 1);
  const Tensor scores = softmax(matmul(expand(unsqueeze(x, 0), {2, 1, 4}), permute(cache, {0, 2, 1})), -1);
  const Tensor mixed = sum(matmul(scores, cache), {0});
  Tensor marked = clone(cache);
  Tensor last = slice(marked, 1, -1);
  mul_(last, Scalar(0.5));
  return {add(matmul(mixed, weight), x), marked, permute(cache, {1, 0, 2})};
}

// Only steps that depend on the size are prepared again; results have the bits of eager runs, whatever the last size
// was.
TEST(OpenSizes, AnExecutableForOtherSizesTakesWhatTheyDoNotChange) {
  const Tensor weight = random_input({4, 4}, 9);
  const OpenCode code = [&](const TensorList& in) { return decode(in, weight); };
  Recorder recorder(Device::current());
  const std::vector<std::string> open{"", "n", ""};
  const Graph graph = [&] {
    const InterpreterScope scope(recorder);
    const TensorList in{recorder.input(DType::f32, {1, 4}), recorder.input(DType::f32, {2, 5, 4}, open, "cache")};
    return recorder.finish(code(in));
  }();
  std::optional<Executable> before;
  for (const int64_t n : {5, 6, 7, 31, 2, 8, 8}) {
    const TensorList inputs{random_input({1, 4}, 1), random_input({2, n, 4}, 2)};
    symbolic::Values sizes(graph.arena());
    ASSERT_EQ(why_not(graph, inputs, &sizes), "");
    Executable now = prepare(graph, &sizes, {.whole_graphs = false, .like = before ? &*before : nullptr});
    if (before) {
      ASSERT_EQ(now.steps.size(), before->steps.size());
      EXPECT_EQ(now.values.size(), before->values.size());
      size_t shared = 0, launches = 0;
      for (size_t i = 0; i < now.steps.size(); ++i) {
        if (now.steps[i].prepared == nullptr) continue;
        ++launches;
        shared += now.steps[i].prepared == before->steps[i].prepared ? 1 : 0;
      }
      EXPECT_GE(shared, 4u) << "of " << launches;
      EXPECT_EQ(now.labels, before->labels);
    }
    const TensorList results = run(now, inputs), expected = code(inputs);
    for (size_t i = 0; i < results.size(); ++i) expect_bits(results[i], expected[i]);
    before = std::move(now);
  }
}

std::string error_of_prepare(const Graph& graph, const std::vector<int64_t>& symbols) {
  symbolic::Values sizes(graph.arena());
  for (uint32_t i = 0; i < symbols.size(); ++i) throw_if_error(sizes.bind(i, symbols[i]));
  try {
    (void)prepare(graph, &sizes);
    return {};
  } catch (const Error& error) {
    return std::string(error.status().message());
  }
}

TEST(OpenSizes, ASizeThatOverflowsIsAnErrorWithSymbolAndOp) {
  const Graph graph = record_open({{3, 4}}, [](const TensorList& in) -> TensorList {
    const SymDims s = sizes(in[0]);
    return {full(SizeList{s[0] * s[1] * s[1], s[1]}, Scalar(1.0), DType::f32)};
  });
  EXPECT_EQ(error_of_prepare(graph, {3, 4}), "");
  EXPECT_EQ(error_of_prepare(graph, {int64_t{1} << 20, int64_t{1} << 22}),
            "full: The size S0*S1^2 is more than int64 can hold, where S0 (s0.0, axis 0 of input '0') is 1048576 and "
            "S1 (s0.1, axis 1 of input '0') is 4194304.");
}

// No recording accepts a negative size: the guard says so, and eager's error names the op.
TEST(OpenSizes, ANegativeSizeBreaksTheGuardOfTheOpThatMakesIt) {
  const Code code = [](const TensorList& in) -> TensorList {
    return {full(SizeList{sizes(in[0])[0] - 5}, Scalar(1.0), DType::f32)};
  };
  const Graph graph = record_open({{7, 4}}, code);
  expect_serves(graph, {{9, 3}}, code);
  EXPECT_NE(why_not_for(graph, {{3, 4}}).find("5 <= S0"), std::string::npos) << why_not_for(graph, {{3, 4}});
  EXPECT_NE(error_of_prepare(graph, {3, 4}).find("S0 - 5 is -2"), std::string::npos) << error_of_prepare(graph, {3, 4});
}

// If the inputs are not those whose sizes were bound, the run is refused before any launch.
TEST(OpenSizes, InputsOfOtherSizesThanThoseThatWereBoundAreRefused) {
  const Graph graph = record_open({{7, 4}}, [](const TensorList& in) -> TensorList { return {relu(in[0])}; });
  symbolic::Values sizes(graph.arena());
  ASSERT_EQ(why_not(graph, random_inputs({{7, 4}}), &sizes), "");
  const Executable program = prepare(graph, &sizes);
  EXPECT_THROW((void)run(program, random_inputs({{6, 4}})), Error);
}

TEST(OpenSizes, BackwardOfARecordedForwardIsRightAtOtherSizesOrRefused) {
  const Code code = [](const TensorList& in) -> TensorList {
    autograd::GradientInterpreter gradients(autograd::interpreter_below());
    const InterpreterScope scope(gradients);
    const Tensor x = in[0].detach().requires_grad_();
    const Tensor w = in[1].detach().requires_grad_();
    const Tensor loss = sum(square(relu(matmul(x, w))));
    return grad({loss}, {x, w});
  };
  const Graph graph = record_open({{7, 4}, {4, 3}}, code);
  expect_serves(graph, {{7, 4}, {4, 3}}, code);
  expect_serves(graph, {{5, 6}, {6, 2}}, code);
}

// The count of a mean is a number in its gradient; a broadcast is undone at every size.
TEST(OpenSizes, GradientsOfMeansBroadcastsAndPartsStayOpen) {
  const Code code = [](const TensorList& in) -> TensorList {
    autograd::GradientInterpreter gradients(autograd::interpreter_below());
    const InterpreterScope scope(gradients);
    const Tensor x = in[0].detach().requires_grad_(), row = in[1].detach().requires_grad_();
    const Tensor part = slice(x, 0, 1, {}, 2), first = select(x, 1, -1);
    return grad({mean(square(x * row)) + mean(exp(part), {0, 1}) + sum(mean(concat({x, x}, 1), 0)) + mean(first)},
                {x, row});
  };
  const Graph graph = record_open({{7, 4}, {4}}, code);
  for (const Dims& dims : {Dims{7, 4}, Dims{5, 6}, Dims{12, 3}}) expect_serves(graph, {dims, {dims[1]}}, code);
  EXPECT_EQ(guards(graph).find("S0 == "), std::string::npos) << guards(graph);
  const std::string text = print(graph);
  EXPECT_NE(text.find("scalar 1 is {S0*S1}"), std::string::npos) << text;
  const std::string again = print(parse(text));  // values have new names
  EXPECT_NE(again.find("scalar 1 is {S0*S1}"), std::string::npos) << again;
  EXPECT_EQ(print(parse(again)), again);
}

TEST(OpenSizes, AnOpenScalarThatIsNoneIsAWrongText) {
  const std::string text = print(
      record_open({{7, 4}}, [](const TensorList& in) -> TensorList { return {sized::div(in[0], size_at(in[0], 0))}; }));
  for (const char* wrong : {"scalar 2 is {S0}", "scalar 1 is {4}", "scalar 1 is {S9}", "scalar 1 is"}) {
    std::string changed = text;
    changed.replace(changed.find("scalar 1 is {S0}"), 16, wrong);
    EXPECT_THROW((void)parse(changed), Error) << wrong;
  }
}

}  // namespace
}  // namespace tenon::graph
