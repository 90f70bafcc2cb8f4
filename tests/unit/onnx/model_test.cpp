// Runs of models: recorded and eager, on several threads, with changing shapes.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = normal(random);
  return Tensor::from<float>(values, dims);
}

Tensor ints(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
}

// softmax(relu(x w + b)), reshaped to [batch, 2, -1] by the chain of shape arithmetic that exporters write.
std::string small_network() {
  ModelBuilder builder(13);
  builder.input("x", kFloat, {"batch", "5"});
  builder.output("y", kFloat, {"batch", "2", "2"});
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> w(20), b(4);
  for (float& value : w) value = normal(random);
  for (float& value : b) value = normal(random);
  builder.weight("w", kFloat, {5, 4}, w);
  builder.weight("b", kFloat, {4}, b);
  builder.weight<int64_t>("zero", kInt64, {1}, {0});
  builder.weight<int64_t>("tail", kInt64, {2}, {2, -1});
  builder.node("MatMul", {"x", "w"}, {"m"}, "/MatMul");
  builder.node("Add", {"m", "b"}, {"a"}, "/Add");
  builder.node("Relu", {"a"}, {"r"}, "/Relu");
  builder.integer(builder.node("Softmax", {"r"}, {"s"}, "/Softmax"), "axis", -1);
  builder.node("Shape", {"x"}, {"shape"});
  builder.node("Gather", {"shape", "zero"}, {"batch"});
  builder.integer(builder.node("Concat", {"batch", "tail"}, {"target"}), "axis", 0);
  builder.node("Reshape", {"s", "target"}, {"y"}, "/Reshape");
  return builder.bytes();
}

Options eager() {
  Options options;
  options.eager = true;
  return options;
}

TEST(Model, ListsInputsAndOutputsWithNamedDims) {
  const Model model = load_bytes(small_network());
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(to_string(model.inputs()[0]), "f32[batch, 5]");
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(to_string(model.outputs()[0]), "f32[batch, 2, 2]");
  EXPECT_EQ(model.info().nodes, 8u);
}

TEST(Model, RecordedAndEagerRunsGiveTheSameBitsForEveryShape) {
  Options exact;
  exact.passes = Passes::exact;
  const Model recorded = load_bytes(small_network(), exact);
  const Model stepwise = load_bytes(small_network(), eager());
  for (int64_t batch : {1, 3, 1, 7, 2, 3}) {
    const Tensor x = random_tensor({batch, 5}, static_cast<uint32_t>(batch));
    const Tensor a = recorded.run({{"x", x}})[0], b = stepwise.run({{"x", x}})[0];
    EXPECT_EQ(a.dims(), (Dims{batch, 2, 2}));
    EXPECT_EQ(a.to_host<float>(), b.to_host<float>());
  }
}

TEST(Model, RunsByPositionAndNamesItsOutputs) {
  const std::string bytes = small_network();
  const std::vector<uint8_t> data(bytes.begin(), bytes.end());
  Model model;
  EXPECT_FALSE(model);
  EXPECT_THROW((void)model.run({}), Error);
  EXPECT_THROW((void)model.inputs(), Error);
  model = load_bytes(data);
  EXPECT_TRUE(model);
  const Tensor x = random_tensor({2, 5}, 3);
  const std::vector<float> expected = model.run({{"x", x}})[0].to_host<float>();
  EXPECT_EQ(model(x)[0].to_host<float>(), expected);
  EXPECT_EQ(model.run_in_order({x})[0].to_host<float>(), expected);
  EXPECT_EQ(model.run_named({{"x", x}}).at("y").to_host<float>(), expected);
  try {
    (void)model(x, x);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "The model has 1 inputs, but 2 are given.");
  }
}

TEST(Model, TellsWhatItsFileSays) {
  ModelBuilder builder(13);
  builder.input("x", kFloat, {"2"});
  builder.output("y", kFloat, {"2"});
  builder.node("Relu", {"x"}, {"y"});
  proto::ModelProto& file = builder.model();
  file.doc_string = "cats and dogs";
  file.model_version = 7;
  builder.graph().name = "animals";
  proto::StringStringEntryProto& entry = file.metadata_props.emplace_back();
  entry.key = "labels";
  entry.value = "cat,dog";
  ModelBuilder::mark(file, proto::ModelProto::k_doc_string);
  ModelBuilder::mark(file, proto::ModelProto::k_model_version);
  ModelBuilder::mark(builder.graph(), proto::GraphProto::k_name);
  ModelBuilder::mark(entry, proto::StringStringEntryProto::k_key);
  ModelBuilder::mark(entry, proto::StringStringEntryProto::k_value);
  const ModelInfo info = load_bytes(builder.bytes()).info();
  EXPECT_EQ(info.description, "cats and dogs");
  EXPECT_EQ(info.graph, "animals");
  EXPECT_EQ(info.version, 7);
  EXPECT_EQ(info.metadata.at("labels"), "cat,dog");
}

TEST(Model, ShapeArithmeticLeavesNoLaunch) {
  const Model model = load_bytes(small_network());
  std::vector<NodeExecution> executions;
  model.run({{"x", random_tensor({3, 5}, 1)}}, &executions);
  for (const NodeExecution& p : executions)
    EXPECT_TRUE(p.op_type == "MatMul" || p.op_type == "Add" || p.op_type == "Relu" || p.op_type == "Softmax")
        << p.op_type;
  ASSERT_FALSE(executions.empty());
  EXPECT_EQ(executions[0].node_name, "/MatMul");
  EXPECT_EQ(executions[0].device, model.device().spelling());
}

TEST(Model, ThreadsGetEqualBits) {
  const Model model = load_bytes(small_network());
  std::vector<std::vector<float>> expected;
  for (uint32_t i = 0; i < 4; ++i)
    expected.push_back(model.run({{"x", random_tensor({1 + i, 5}, i)}})[0].to_host<float>());
  const Model fresh = load_bytes(small_network());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 40; ++i) {
        const uint32_t which = (i + t) % 4;
        if (fresh.run({{"x", random_tensor({1 + which, 5}, which)}})[0].to_host<float>() != expected[which]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// y = x * 2 w + b, where w and b are inputs with a default value, so that 2 w is a constant of most runs.
ModelBuilder with_defaults(int64_t ir_version) {
  ModelBuilder builder;
  builder.model().ir_version = ir_version;
  for (const char* name : {"x", "w", "b"}) builder.input(name, kFloat, {"2"});
  builder.output("y", kFloat, {"2"});
  builder.weight<float>("w", kFloat, {2}, {1, 2});
  builder.weight<float>("b", kFloat, {2}, {10, 20});
  builder.node("Add", {"w", "w"}, {"double"});
  builder.node("Mul", {"x", "double"}, {"product"});
  builder.node("Add", {"product", "b"}, {"y"});
  return builder;
}

TEST(Model, TakesInputsThatHaveAValue) {
  const auto pair = [](float a, float b) { return Tensor::from<float>(std::vector<float>{a, b}, {2}); };
  for (const bool eager : {false, true}) {
    Options options;
    options.eager = eager;
    const Model model = load_bytes(with_defaults(8).bytes(), options);
    ASSERT_EQ(model.inputs().size(), 1u);
    ASSERT_EQ(model.defaults().size(), 2u);
    EXPECT_EQ(model.defaults()[0].name, "w");
    const auto result = [&](const Inputs& inputs) { return model.run(inputs)[0].to_host<float>(); };
    EXPECT_EQ(result({{"x", pair(1, 1)}}), (std::vector<float>{12, 24}));
    EXPECT_EQ(result({{"x", pair(1, 1)}, {"w", pair(3, 4)}}), (std::vector<float>{16, 28}));
    EXPECT_EQ(result({{"x", pair(1, 1)}, {"b", pair(0, 1)}}), (std::vector<float>{2, 5}));
    EXPECT_EQ(result({{"x", pair(1, 1)}, {"b", pair(0, 1)}, {"w", pair(5, 6)}}), (std::vector<float>{10, 13}));
    EXPECT_EQ(result({{"x", pair(1, 1)}}), (std::vector<float>{12, 24}));
    EXPECT_THROW(model.run({{"x", pair(1, 1)}, {"w", Tensor::from<float>(std::vector<float>{1}, {1})}}), Error);
    EXPECT_THROW(model.run({{"w", pair(1, 1)}}), Error);
  }
  const Model older = load_bytes(with_defaults(3).bytes());  // its graph inputs include every weight
  EXPECT_TRUE(older.defaults().empty());
  EXPECT_THROW(older.run({{"x", pair(1, 1)}, {"w", pair(3, 4)}}), Error);
}

TEST(Model, WritesIntoBoundOutputs) {
  const Model model = load_bytes(small_network());
  const Tensor x = random_tensor({2, 5}, 3);
  const Tensor mine = full({2, 2, 2}, Scalar(-1.0), DType::f32);
  const TensorList results = model.run({{"x", x}}, Inputs{{"y", mine}});
  EXPECT_EQ(results[0].impl(), mine.impl());
  EXPECT_EQ(mine.to_host<float>(), model.run({{"x", x}})[0].to_host<float>());
  EXPECT_THROW(model.run({{"x", x}}, Inputs{{"y", full({2, 2}, Scalar(0.0), DType::f32)}}), Error);
  EXPECT_THROW(model.run({{"x", x}}, Inputs{{"z", mine}}), Error);
}

std::string message_of(const Model& model, const Inputs& inputs) {
  try {
    model.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(Model, SaysWhatIsWrongWithInputs) {
  const Model model = load_bytes(small_network());
  EXPECT_EQ(message_of(model, {}), "Input 'x', f32[batch, 5], is missing.");
  EXPECT_EQ(message_of(model, {{"x", random_tensor({2, 4}, 1)}}),
            "Input 'x' must be f32[batch, 5], but f32[2, 4] was given.");
  EXPECT_EQ(message_of(model, {{"x", ints({1, 2})}}), "Input 'x' must be f32[batch, 5], but i64[2] was given.");
  EXPECT_EQ(message_of(model, {{"x", random_tensor({2, 5}, 1)}, {"q", ints({1})}}),
            "The model has no input 'q'; its inputs are 'x'.");
  EXPECT_EQ(message_of(model, {{"q", ints({1})}, {"z", ints({1})}}),
            "The model has no input 'q' or 'z'; its inputs are 'x'. Input 'x', f32[batch, 5], is missing.");
}

TEST(Model, HoldsTheDeclaredRankWhereDimsAreHints) {
  Options hints;
  hints.shapes = Shapes::rank;
  const Model model = load_bytes(small_network(), hints);
  const Tensor flat = random_tensor({5}, 1);
  EXPECT_EQ(message_of(model, {{"x", flat}}), "Input 'x' must be f32[batch, 5], but f32[5] was given.");
  EXPECT_EQ(message_of(model, {{"x", random_tensor({1, 2, 5}, 1)}}),
            "Input 'x' must be f32[batch, 5], but f32[1, 2, 5] was given.");
}

// y = reshape(x, shape), where shape is an input.
std::string reshape_model() {
  ModelBuilder builder;
  builder.input("x", kFloat, {"n"});
  builder.input("shape", kInt64, {"rank"});
  builder.output("y", kFloat, {"a", "b"});
  builder.node("Relu", {"x"}, {"r"});
  builder.node("Reshape", {"r", "shape"}, {"y"}, "to shape");
  return builder.bytes();
}

TEST(Model, TakesInputsThatAreShapesByValue) {
  const Model model = load_bytes(reshape_model());
  const Tensor x = random_tensor({12}, 5);
  const std::vector<float> expected = relu(x).to_host<float>();
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{3, 4}, {4, 3}, {-1, 2}, {3, 4}, {12, 1}}) {
    const Tensor y = model.run({{"x", x}, {"shape", ints(shape)}})[0];
    EXPECT_EQ(y.rank(), 2);
    EXPECT_EQ(y.dims()[1], shape[1]);
    EXPECT_EQ(y.to_host<float>(), expected);
  }
  EXPECT_NE(message_of(model, {{"x", x}, {"shape", ints({5, 5})}})
                .find("while running node 1 (to shape) on " + model.device().spelling()),
            std::string::npos);
}

TEST(Model, NamesTheOperatorOfANodeWithoutAName) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"4"});
  builder.input("i", kInt64, {"n"});
  builder.output("y", kFloat, {"n"});
  builder.node("Gather", {"x", "i"}, {"y"});
  const std::string wanted = "while running node 0 (Gather) on " + Device::current().spelling();
  for (const Options& options : {Options(), eager()}) {
    const std::string message =
        message_of(load_bytes(builder.bytes(), options), {{"x", random_tensor({4}, 1)}, {"i", ints({7})}});
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
  }
}

// y = range(0, sum(x), 1): the length depends on data.
TEST(Model, RunsNodeAfterNodeWhereShapesDependOnData) {
  ModelBuilder builder(13);
  builder.input("x", kInt64, {"n"});
  builder.output("y", kInt64, {"m"});
  builder.weight<int64_t>("zero", kInt64, {}, {0});
  builder.weight<int64_t>("one", kInt64, {}, {1});
  builder.integer(builder.node("ReduceSum", {"x"}, {"sum"}), "keepdims", 0);
  builder.node("Range", {"zero", "sum", "one"}, {"y"});
  const Model model = load_bytes(builder.bytes());
  std::vector<int64_t> large(2000, 0);
  large[77] = 3;
  EXPECT_EQ(model.run({{"x", ints(large)}})[0].to_host<int64_t>(), (std::vector<int64_t>{0, 1, 2}));
  large[78] = 1;
  EXPECT_EQ(model.run({{"x", ints(large)}})[0].to_host<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(model.run({{"x", ints({2})}})[0].to_host<int64_t>(), (std::vector<int64_t>{0, 1}));
}

TEST(Model, OutputsShareNothingWithInputsWeightsOrEachOther) {
  ModelBuilder builder;
  builder.input("x", kFloat, {"2"});
  builder.output("a", kFloat, {"2"});
  builder.output("b", kFloat, {"2"});
  builder.output("w", kFloat, {"2"});
  builder.weight<float>("w", kFloat, {2}, {5, 6});
  builder.node("Identity", {"x"}, {"a"});
  builder.node("Identity", {"x"}, {"b"});
  const Model model = load_bytes(builder.bytes());
  const Tensor x = random_tensor({2}, 9);
  const std::vector<float> before = x.to_host<float>();
  for (int run = 0; run < 2; ++run) {
    TensorList results = model.run({{"x", x}});
    EXPECT_EQ(results[2].to_host<float>(), (std::vector<float>{5, 6}));
    fill_(results[0], Scalar(1.0));
    fill_(results[2], Scalar(2.0));
    EXPECT_EQ(results[1].to_host<float>(), before);
    EXPECT_EQ(x.to_host<float>(), before);
  }
}

TEST(Model, TensorsComeBackFromTheirOwnFormat) {
  const Tensor x = random_tensor({3, 0, 2}, 1), y = random_tensor({4, 5}, 2);
  std::string name;
  EXPECT_EQ(tensor_from_bytes(tensor_to_bytes(x, "x")).dims(), x.dims());
  const Tensor back = tensor_from_bytes(tensor_to_bytes(y, "yy"), Device(), &name);
  EXPECT_EQ(back.to_host<float>(), y.to_host<float>());
  EXPECT_EQ(name, "yy");
  EXPECT_THROW(tensor_from_bytes("no tensor"), Error);
}

}  // namespace
}  // namespace tenon::onnx
