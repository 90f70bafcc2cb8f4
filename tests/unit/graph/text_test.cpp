// Graphs as text: printed graphs parse to the same graph, and invalid text is refused.
#include "core/graph/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/dump.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/regions/control_flow.h"
#include "core/graph/verify.h"
#include "core/ops/ops.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/tensor/expect_error.h"

namespace tenon::graph {
namespace {

using testing::error_of;

Tensor floats(const Dims& dims, float first) {
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = first += 0.375f;
  return Tensor::from<float>(values, dims);
}

// A graph with most elements of the text form: constants, scalars, attributes, several results, epilogues, labels,
// precision.
Graph rich_graph() {
  Recorder recorder(Device::current(), {.name = "a \"rich\" one"});
  InterpreterScope scope(recorder);
  const Tensor x = recorder.input(DType::f32, {2, 3, 8, 8});
  recorder.label("node 1 (conv)");
  Tensor y = relu(conv(x, floats({4, 3, 3, 3}, -2), floats({4}, 1), {2, 1}, {1, 1, 0, 1}));
  recorder.label("node 2");
  const auto [pooled, where] = max_pool_with_indices(y, 2, 2);
  const PrecisionScope precision(Precision::full);
  y = add(leaky_relu(pooled, 0.1), Scalar(std::numeric_limits<double>::infinity()));
  y = slice(pad(cast(y, DType::f64), {1, 1}, "constant", -0.0), 3, 1, -1);
  y = matmul(y, cast(floats({4, 2}, 0), DType::f64));
  Graph graph = recorder.finish(TensorList{y, cast(where, DType::i32), full({3}, Scalar(7), DType::i64)});
  take_epilogues(&graph, {});
  return graph;
}

// The text of `graph` with its values renumbered in order.
std::string normal(const Graph& graph) { return print(parse(print(graph))); }

TEST(Text, WhatIsWrittenReadsBack) {
  Graph graph = rich_graph();
  ASSERT_TRUE(verify(graph).ok()) << verify(graph).message();
  const std::string text = print(graph);
  EXPECT_NE(text.find("window.stride: [2, 1, 0]"), std::string::npos) << text;
  EXPECT_NE(text.find("then relu"), std::string::npos) << text;
  EXPECT_NE(text.find("label \"node 1 (conv)\""), std::string::npos) << text;
  EXPECT_NE(text.find("add(%8, _) scalars (0, inf)"), std::string::npos) << text;
  Graph again = parse(text);
  EXPECT_TRUE(verify(again).ok()) << verify(again).message();
  EXPECT_EQ(print(again), normal(again));
  const Tensor x = floats({2, 3, 8, 8}, -20);
  const TensorList a = run(prepare(graph), std::vector<Tensor>{x}), b = run(prepare(again), std::vector<Tensor>{x});
  EXPECT_EQ(a[0].to_host<double>(), b[0].to_host<double>());
  EXPECT_EQ(a[1].to_host<int32_t>(), b[1].to_host<int32_t>());
}

TEST(Text, LargeConstantsGoToAFile) {
  const Graph graph = rich_graph();
  std::string constants;
  const std::string text = print(graph, {.most_bytes = 16, .constants = &constants});
  EXPECT_NE(text.find("= file 0"), std::string::npos) << text;
  EXPECT_NE(text.find("= file 448"), std::string::npos) << "aligned: " << text;
  const Tensor x = floats({2, 3, 8, 8}, -20);
  EXPECT_EQ(run(prepare(parse(text, constants)), std::vector<Tensor>{x})[0].to_host<double>(),
            run(prepare(graph), std::vector<Tensor>{x})[0].to_host<double>());
  EXPECT_NE(error_of([&] { parse(text, constants.substr(0, 40)); }).message().find("the file of constants is shorter"),
            std::string::npos);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The stages of a graph with a hostile name: only the stages that changed it. Each runs with the constants in a
// separate file.
TEST(Dump, WritesStagesThatRun) {
  const ScratchFolder scratch;
  Recorder recorder(Device::current(), {.name = "../../etc/pass\nwd"});
  InterpreterScope scope(recorder);
  const Tensor x = recorder.input(DType::f32, {3, 16});
  const Tensor y = relu(add(matmul(mul(x, Scalar(1.0)), floats({16, 8}, -3)), floats({8}, 1)));
  Graph graph = recorder.finish(TensorList{y});
  const Tensor given = floats({3, 16}, -2);
  const std::vector<float> expected = run(prepare(graph), TensorList{given})[0].to_host<float>();
  Dump dump(scratch.path() + "/new/folder", graph);
  size_t number = 0;
  for (const Pass& pass : passes()) {
    pass.run(&graph, {});
    dump.stage(++number, pass.name, graph);
  }
  const std::filesystem::path folder = dump.folder();
  EXPECT_EQ(folder.parent_path(), scratch.path() + "/new/folder");
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  ASSERT_EQ(names.size(), 4u);
  EXPECT_TRUE(names.contains("00-recorded.txt") && names.contains("05-redundant.txt"));
  EXPECT_EQ(std::filesystem::file_size(folder / "constants.bin"), 16u * 8 * 4) << "a constant is written once";
  for (const std::string& name : names) {
    if (!name.ends_with(".txt")) continue;
    const Graph again = parse(read_file(folder / name), read_file(folder / "constants.bin"));
    const std::vector<float> got = run(prepare(again), TensorList{given})[0].to_host<float>();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-3f) << name;
  }
}

TEST(Dump, NamesOfFilesAreSafe) {
  EXPECT_EQ(file_name_of("../../a b\n\"c\".onnx"), "_._.._a_b__c_.onnx");
  EXPECT_EQ(file_name_of("-rf"), "_rf");
  EXPECT_EQ(file_name_of(std::string(200, 'x')).size(), 64u);
}

TEST(Dump, AFolderThatCannotBeIsAnError) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("file", "");
  testing::expect_error([&] { Dump(file, rich_graph()); }, Code::invalid_argument, {"TENON_DUMP: '" + file});
}

void expect_wrong(const std::string& lines, const std::string& what) {
  const Status status = error_of([&] { parse("graph \"g\"\n" + lines); });
  EXPECT_EQ(status.code(), Code::invalid_argument) << lines;
  EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
}

TEST(Text, ALineThatIsWrongIsNamed) {
  const std::string x = "%1 = input f32[2, 3] on cpu:0\n";
  expect_wrong(x + "%2 = relo(%1)\nreturn %2\n", "line 3: at position 9 there is no op 'relo'");
  expect_wrong(x + "%2 = relu(%3)\nreturn %2\n", "%3 is not defined before");
  expect_wrong(x + "%1 = relu(%1)\nreturn %1\n", "%1 is defined already");
  expect_wrong(x + "%2 = relu(%1) : f32[3, 2]\nreturn %2\n", "result 0 has another type by the op's rule");
  expect_wrong(x + "%2 = relu(%1, %1)\nreturn %2\n", "it has 2 arguments, but takes 1 to 1");
  expect_wrong(x + "%2 = matmul(%1, _)\nreturn %2\n", "argument 1 is absent");
  expect_wrong(x + "%2 = softmax(%1) {axis: 1, exis: 2}\nreturn %2\n", "softmax has no attribute 'exis'");
  expect_wrong(x + "%2 = relu(%1) then relu\nreturn %2\n", "it takes no epilogues");
  expect_wrong(x + "%2, %3 = relu(%1)\nreturn %2\n", "it has 2 results, but gives 1");
  expect_wrong(x + "%2 = constant f32[2] on cpu:0 = 0000\nreturn %2\n", "8 bytes in hex are expected");
  expect_wrong(x, "the line with 'return' is missing");
  expect_wrong(x + "return %1\n%2 = relu(%1)\n", "nothing may follow 'return'");
  expect_wrong(x + "%2 = expand(%1) {dims: [2, 5]}\nreturn %2\n", "expand");
}

// Bytes of texts are changed, dropped and doubled at random. Nothing may crash, and every text that parses is a valid
// graph.
void expect_no_harm(const std::string& text) {
  std::mt19937 random(1);
  size_t read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (uint32_t i = 0; i <= random() % 4; ++i) {
      const size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0: changed[at] = static_cast<char>(random()); break;
        case 1: changed.erase(at, 1 + random() % 5); break;
        case 2: changed.insert(at, changed.substr(random() % changed.size(), 1 + random() % 8)); break;
        default: changed[at] = "0123456789,[](){}%_"[random() % 19]; break;
      }
      if (changed.empty()) break;
    }
    try {
      Graph graph = parse(changed);
      EXPECT_TRUE(verify(graph).ok()) << verify(graph).message() << "\n" << changed;
      ++read;
      prepare(graph, {.whole_graphs = false});
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(read, 50u) << "too few of the changed texts are still graphs";
}

TEST(Text, NoChangeOfATextDoesHarm) { expect_no_harm(print(rich_graph())); }

// True if `a` has the greater sum. One sum after the other: the order is part of the text.
Tensor above(const Tensor& a, const Tensor& b) {
  const Tensor of_b = sum(b);
  return gt(sum(a), of_b);
}

// A scan and a loop in a branch of open sizes.
Graph graph_with_regions() {
  Recorder recorder(Device::current(), {.name = "regions"});
  InterpreterScope scope(recorder);
  const std::string names[] = {"length", ""};
  const Tensor x = recorder.input(DType::f32, {3, 2}, names), flag = recorder.input(DType::boolean, Dims());
  recorder.label("the branch");
  const auto then_fn = [&] {
    const Scanned made = scan(
        [](const TensorList& c, const TensorList& s) {
          return Scanned{{add(c[0], s[0])}, {c[0]}};
        },
        {floats({2}, 1)}, {x});
    return TensorList{made.ys[0], made.carry[0]};
  };
  const auto else_fn = [&] {
    return TensorList{relu(x), while_loop([&](const TensorList& s) { return above(s[0], x); },
                                          [](const TensorList& s) { return TensorList{mul(s[0], Scalar(0.5))}; },
                                          {floats({2}, 3)}, {.most = 9})[0]};
  };
  return recorder.finish(cond(flag, then_fn, else_fn));
}

TEST(Text, NoChangeOfRegionsDoesHarm) { expect_no_harm(print(graph_with_regions())); }

constexpr std::string_view kRegions =
    R"(%1 = input f32[S0, 2] on cpu:0
%2 = input bool[] on cpu:0
%3, %4 = cond(%2, %1) : f32[S0, 2], f32[2] label "the branch"
  region then
    %1 = input f32[S0, 2] on cpu:0
    %2 = constant f32[2] on cpu:0 = 0000b03f0000e03f
    %3, %4 = scan(%2, %1) {carried: 1, sliced: 1} : f32[2], f32[S0, 2] label "the branch"
      region body
        %1 = input f32[2] on cpu:0
        %2 = input f32[2] on cpu:0
        %3 = add(%1, %2) : f32[2] label "the branch"
        return %3, %1
    return %4, %3
  region else
    %1 = input f32[S0, 2] on cpu:0
    %2 = constant f32[2] on cpu:0 = 0000584000007040
    %3 = relu(%1) : f32[S0, 2] label "the branch"
    %4 = while_loop(%2, %1) {limited: 1, most: 9} : f32[2] label "the branch"
      region cond
        %1 = input f32[2] on cpu:0
        %2 = input f32[S0, 2] on cpu:0
        %3 = sum(%2) {axes: 3} : f32[] label "the branch"
        %4 = sum(%1) {axes: 1} : f32[] label "the branch"
        %5 = gt(%4, %3) : bool[] label "the branch"
        return %5
      region body
        %1 = input f32[2] on cpu:0
        %2 = input f32[S0, 2] on cpu:0
        %3 = mul(%1, _) scalars (0, 0x1p-1) : f32[2] label "the branch"
        return %3
    return %3, %4
return %3, %4
)";

TEST(Text, RegionsStandBehindTheirNode) {
  Graph graph = graph_with_regions();
  ASSERT_EQ(verify(graph).message(), "");
  std::string text = normal(graph);
  text.erase(0, text.find("\n%") + 1);
  EXPECT_EQ(text, kRegions);
}

TEST(Text, RefusesWrongRegions) {
  const std::string text = print(graph_with_regions());
  const auto changed_text = [&](const std::string& old, const std::string& with) {
    std::string changed = text;
    const size_t at = changed.find(old);
    EXPECT_NE(at, std::string::npos) << old << "\n" << text;
    if (at != std::string::npos) changed.replace(at, old.size(), with);
    return error_of([&] { parse(changed); }).message();
  };
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(changed_text("region else", "region or"), "'else' is expected");
  has(changed_text("cond(%2, %1)", "cond(%1, %1)"),
      "cond: the predicate must be one bool, but it is f32 [S0, 2] on cpu:0.");
  has(changed_text("cond(%2, %1)", "cond(%2)"), "has 1 inputs, but the node has 0 operands for it");
  has(changed_text("limited: 1", "limited: 2"), "a number of it is out of range");
  has(changed_text("sliced: 1", "sliced: 7"), "it has 2 operands, which are too few or too many");
  std::string deep = "graph \"g\"\n%1 = input bool[] on cpu:0\n";
  for (int i = 0; i < 100000; ++i) deep += "%2 = cond(%1, %1)\nregion then\n%1 = input bool[] on cpu:0\n";
  has(error_of([&] { parse(deep); }).message(), "too deep");
}

TEST(Verify, FindsWhatIsWrong) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  const Tensor x = recorder.input(DType::f32, {2, 3});
  Graph graph = recorder.finish(TensorList{exp(relu(x))});
  ASSERT_TRUE(verify(graph).ok());
  const NodeId relu_node = graph.first(), exp_node = graph.last();
  graph.set_inputs(relu_node, {graph.node(exp_node).results[0]});
  EXPECT_NE(verify(graph).message().find("which is not made before it"), std::string::npos) << verify(graph).message();
  graph.set_inputs(relu_node, {});
  EXPECT_NE(verify(graph).message().find("it has 0 arguments"), std::string::npos) << verify(graph).message();
}

}  // namespace
}  // namespace tenon::graph
