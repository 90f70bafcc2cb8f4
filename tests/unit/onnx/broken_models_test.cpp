// A generator of broken models: indices, pads, axes, lengths, counts, types, cycles, names, depth, external paths. Each
// is refused with a sentence, when it is loaded or run, and none crashes.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Attributes = std::vector<std::pair<std::string, Ints>>;  // one number: an int; else a list

constexpr int64_t kHuge[] = {INT64_MAX, INT64_MIN, int64_t{1} << 40, -(int64_t{1} << 40)};

struct Broken {
  std::string what;
  ModelBuilder model;
};

class Generator {
 public:
  std::vector<Broken> models;

  // A node on x [2, 3, 8, 8] (or `dims`) of floats, with weights of the given numbers.
  ModelBuilder& node(const std::string& what, const std::string& op, const Attributes& attributes,
                     const std::vector<Ints>& numbers = {}, int32_t type = kFloat,
                     const std::vector<std::string>& dims = {"2", "3", "8", "8"}) {
    Broken& broken = models.emplace_back(Broken{fmt::format("{}: {}", op, what), ModelBuilder(20)});
    ModelBuilder& model = broken.model;
    model.input("x", type, dims);
    std::vector<std::string> inputs{"x"};
    for (size_t i = 0; i < numbers.size(); ++i) {
      inputs.push_back(fmt::format("w{}", i));
      model.weight<int64_t>(inputs.back(), kInt64, {static_cast<int64_t>(numbers[i].size())}, numbers[i]);
    }
    proto::NodeProto& made = model.node(op, inputs, {"y"}, "broken");
    for (const auto& [name, values] : attributes) set(model, made, name, values);
    open_output(model, "y");
    return model;
  }

  static void set(ModelBuilder& model, proto::NodeProto& node, const std::string& name, const Ints& values) {
    if (values.size() == 1 && name != "axes" && name != "pads" && name.back() != 's') {
      model.integer(node, name, values[0]);
    } else {
      model.integers(node, name, values);
    }
  }

  // An output without a type declares nothing that could be wrong.
  static void open_output(ModelBuilder& model, const std::string& name) {
    model.output(name, kFloat, {});
    model.graph().output.back().type->tensor_type->shape.reset();
    model.graph().output.back().type->tensor_type->present &= ~(1u << proto::TypeProto_Tensor::k_shape);
  }
};

void axes(Generator& g) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "Flatten", "LpNormalization"}) {
    for (int64_t axis : {int64_t{5}, int64_t{-6}, kHuge[0], kHuge[1], kHuge[2], kHuge[3]})
      g.node(fmt::format("axis {}", axis), op, {{"axis", {axis}}});
  }
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Squeeze", "Unsqueeze"}) {
    for (int64_t axis : {int64_t{7}, int64_t{-8}, kHuge[0], kHuge[1], kHuge[2]})
      g.node(fmt::format("axes {}", axis), op, {}, {{axis}});
  }
  for (const char* op : {"Gather", "GatherElements"}) {
    for (int64_t axis : {int64_t{4}, int64_t{-5}, kHuge[0], kHuge[1]})
      g.node(fmt::format("axis {}", axis), op, {{"axis", {axis}}}, {{0}});
  }
  for (const Ints& order : {Ints{0, 1, 2}, Ints{0, 1, 2, 2}, Ints{0, 1, 2, 4}, Ints{-5, 0, 1, 2},
                            Ints{0, 1, 2, kHuge[0]}, Ints{0, 1, 2, 3, 4}})
    g.node(fmt::format("an order of {} ending in {}", order.size(), order.back()), "Transpose", {{"perm", order}});
}

void indices(Generator& g) {
  for (int64_t index : {int64_t{2}, int64_t{-3}, int64_t{100}, kHuge[0], kHuge[1], kHuge[2]}) {
    g.node(fmt::format("index {}", index), "Gather", {{"axis", {0}}}, {{index}});
    g.node(fmt::format("index {}", index), "GatherND", {}, {{index, 0}});
  }
  for (int64_t step : {int64_t{0}}) g.node("step 0", "Slice", {}, {{0}, {1}, {0}, {step}});
  for (int64_t axis : {int64_t{4}, int64_t{-5}, kHuge[0], kHuge[1]})
    g.node(fmt::format("axis {}", axis), "Slice", {}, {{0}, {1}, {axis}, {1}});
  g.node("two starts and one end", "Slice", {}, {{0, 0}, {1}, {0, 1}, {1, 1}});
}

void lengths(Generator& g) {
  for (const Ints& shape : {Ints{385}, Ints{-1, -1}, Ints{5, -1}, Ints{-2, 384}, Ints{0, 0, 0, 0, 0}, Ints{kHuge[0], 2},
                            Ints{kHuge[1]}, Ints{kHuge[2], kHuge[2]}, Ints{1, 1, 1, 1, 1, 1, 1, 1, 384}})
    g.node(fmt::format("{} dims, the first {}", shape.size(), shape[0]), "Reshape", {}, {shape});
  for (const Ints& shape : {Ints{3}, Ints{2, 3, 8, 7}, Ints{kHuge[0]}, Ints{-1}, Ints{kHuge[2], 1, 1, 1, 1},
                            Ints{1, 1, 1, 1, 1, 1, 1, 1, 1}})
    g.node(fmt::format("to {} dims, the first {}", shape.size(), shape[0]), "Expand", {}, {shape});
  for (const Ints& counts : {Ints{1}, Ints{1, 1, 1, -1}, Ints{1, 1, 1, kHuge[0]}, Ints{kHuge[2], kHuge[2], 1, 1},
                             Ints{1, 1, 1, 1, 1}, Ints{1, 1, 1, kHuge[1]}})
    g.node(fmt::format("{} counts, the last {}", counts.size(), counts.back()), "Tile", {}, {counts});
  for (const Ints& parts : {Ints{1, 2}, Ints{-1, 3}, Ints{kHuge[0], 2}, Ints{kHuge[0], kHuge[0]}, Ints{3}})
    g.node(fmt::format("{} parts, the first {}", parts.size(), parts[0]), "Split", {{"axis", {0}}}, {parts});
  for (int64_t size : {int64_t{0}, int64_t{-1}, int64_t{3}, kHuge[0], kHuge[1], kHuge[2]}) {
    g.node(fmt::format("blocks of {}", size), "DepthToSpace", {{"blocksize", {size}}});
    if (size != 3) g.node(fmt::format("blocks of {}", size), "SpaceToDepth", {{"blocksize", {size}}});
  }
  for (int64_t size : {int64_t{0}, int64_t{-1}, kHuge[0], kHuge[1]})
    g.node(fmt::format("size {}", size), "LRN", {{"size", {size}}});
  for (const Ints& shape : {Ints{-1, 1, 1, 1}, Ints{1, 1, 1}, Ints{kHuge[1], 1, 1, 1}})
    g.node(fmt::format("{} lengths, the first {}", shape.size(), shape[0]), "CenterCropPad", {}, {shape});
}

void windows(Generator& g) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (const Ints& kernel : {Ints{3}, Ints{0, 3}, Ints{3, -1}, Ints{3, kHuge[0]}, Ints{kHuge[2], 3},
                               Ints{3, kHuge[1]}, Ints{3, 3, 3}, Ints{100, 100}})
      g.node(fmt::format("a kernel of {} ending in {}", kernel.size(), kernel.back()), op, {{"kernel_shape", kernel}});
    for (const Ints& strides : {Ints{1}, Ints{0, 1}, Ints{1, -1}, Ints{kHuge[0], 1}, Ints{1, kHuge[1]}})
      g.node(fmt::format("{} strides, the first {}", strides.size(), strides[0]), op,
             {{"kernel_shape", {3, 3}}, {"strides", strides}});
    for (const Ints& pads : {Ints{1, 1}, Ints{-1, 0, 0, 0}, Ints{0, 0, 0, kHuge[0]}, Ints{kHuge[1], 0, 0, 0},
                             Ints{0, 0, 0, 0, 0}, Ints{kHuge[2], 0, 0, 0}})
      g.node(fmt::format("{} pads, the first {}", pads.size(), pads[0]), op,
             {{"kernel_shape", {3, 3}}, {"pads", pads}});
    for (const Ints& dilations : {Ints{0, 1}, Ints{1}, Ints{1, -2}, Ints{kHuge[0], 1}, Ints{7, 7}})
      g.node(fmt::format("{} dilations, the first {}", dilations.size(), dilations[0]), op,
             {{"kernel_shape", {3, 3}}, {"dilations", dilations}});
  }
  for (const Ints& pads : {Ints{1}, Ints{0, 0, 0, 0, 0, 0, 0, kHuge[0]}, Ints{kHuge[1], 0, 0, 0, 0, 0, 0, 0},
                           Ints{-9, 0, 0, 0, -9, 0, 0, 0}, Ints{0, 0, 0, 0, 0, 0, 0, 0, 0}})
    g.node(fmt::format("{} pads, the first {}", pads.size(), pads[0]), "Pad", {}, {pads});
  for (const Ints& image : {Ints{0, 5}, Ints{-5, 5}, Ints{5}, Ints{kHuge[0], 5}})
    g.node(fmt::format("an image of {} axes, the first {}", image.size(), image[0]), "Col2Im", {}, {image, {1, 5}},
           kFloat, {"1", "5", "5"});
}

// Weights of a convolution that do not fit, and weights that are not numbers.
void convolutions(Generator& g) {
  const auto conv = [&](const std::string& what, const Ints& weight, const Attributes& attributes, const char* op) {
    ModelBuilder& model = g.node(what, op, attributes);
    const int64_t count = *checked_count(Dims(weight));
    model.weight<float>("w", kFloat, weight, std::vector<float>(static_cast<size_t>(count), 1.0f));
    model.graph().node[0].input.push_back("w");
  };
  for (const char* op : {"Conv", "ConvTranspose"}) {
    for (const Ints& weight : {Ints{4, 2, 3, 3}, Ints{4, 3, 3}, Ints{4, 3, 3, 3, 3}, Ints{}, Ints{4, 0, 3, 3}})
      conv(fmt::format("weights of rank {}", weight.size()), weight, {}, op);
    for (int64_t group : {int64_t{0}, int64_t{-1}, int64_t{2}, kHuge[0], kHuge[1]})
      conv(fmt::format("{} groups", group), {3, 3, 3, 3}, {{"group", {group}}}, op);
    for (const Ints& strides : {Ints{0, 1}, Ints{1}, Ints{kHuge[0], 1}, Ints{1, -1}})
      conv(fmt::format("strides from {}", strides[0]), {3, 3, 3, 3}, {{"strides", strides}}, op);
    for (const Ints& pads : {Ints{1}, Ints{0, 0, -1, 0}, Ints{kHuge[0], 0, 0, 0}, Ints{0, 0, 0, kHuge[1]}})
      conv(fmt::format("{} pads from {}", pads.size(), pads[0]), {3, 3, 3, 3}, {{"pads", pads}}, op);
    conv("a kernel_shape that the weights do not have", {3, 3, 3, 3}, {{"kernel_shape", {5, 5}}}, op);
  }
}

constexpr const char* kUnary[] = {
    "Relu", "Exp",  "Log",  "Sqrt",      "Sigmoid",   "Tanh",        "Softplus",   "Softsign",
    "Elu",  "Selu", "Ceil", "Floor",     "Round",     "Sin",         "Cos",        "Tan",
    "Asin", "Acos", "Atan", "Sinh",      "Cosh",      "Asinh",       "Acosh",      "Atanh",
    "Erf",  "Gelu", "Mish", "HardSwish", "LeakyRelu", "HardSigmoid", "Reciprocal", "ThresholdedRelu"};

void types_counts_and_names(Generator& g) {
  for (const char* op : kUnary) {
    for (int32_t type : {kString, kBool, kComplex64})
      if (!(std::string(op) == "Erf" && type != kString)) g.node(fmt::format("on type {}", type), op, {}, {}, type);
    g.node("two inputs", op, {}, {{1}});
    g.node("no input", op, {}).graph().node[0].input.clear();
    g.node("an input without a name", op, {}).graph().node[0].input[0] = "";
    g.node("an input that nothing makes", op, {}).graph().node[0].input[0] = "nowhere";
    g.node("its own output as input", op, {}).graph().node[0].input[0] = "y";
    g.node("an unknown attribute", op, {{"quux", {1}}});
    g.node("an attribute of another operator", op, {{"kernel_shape", {1, 1}}});
    g.node("no output", op, {}).graph().node[0].output.clear();
    g.node("the input as output", op, {}).graph().node[0].output[0] = "x";
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Equal", "Less", "Max", "And"}) {
    if (std::string(op) != "Max") g.node("one input", op, {});
    g.node("an integer beside floats", op, {}, {{1, 2, 3, 4, 5, 6, 7, 8}});
    if (std::string(op) == "Pow") g.models.pop_back();  // the exponent of Pow may be an integer
  }
}

void graphs(Generator& g) {
  for (int64_t version : {int64_t{0}, int64_t{-1}, int64_t{99}, kHuge[0], kHuge[1]})
    g.node(fmt::format("opset {}", version), "Quux", {}).model().opset_import[0].version = version;
  for (int64_t version : {int64_t{0}, int64_t{-1}, kHuge[0], kHuge[1]})
    g.node(fmt::format("IR version {}", version), "Relu", {}).model().ir_version = version;
  ModelBuilder& cycle = g.node("a cycle of two nodes", "Relu", {});
  cycle.graph().node[0].input[0] = "z";
  cycle.node("Relu", {"y"}, {"z"});
  g.node("two inputs of one name", "Relu", {}).input("x", kFloat, {"2"});
  Generator::open_output(g.node("an output that nothing makes", "Relu", {}), "nowhere");
  g.node("no outputs", "Relu", {}).graph().output.clear();
  g.node("a negative dim", "Relu", {}, {}, kFloat, {"-3"});
  g.node("nine dims", "Relu", {}, {}, kFloat, {"1", "1", "1", "1", "1", "1", "1", "1", "1"});
  for (const char* dim : {"9223372036854775807", "1099511627776"})
    g.node(fmt::format("dims of {}", dim), "Relu", {}, {}, kFloat, {dim, dim});
  for (int depth : {2, 5, 30, 200}) {
    ModelBuilder body(20);
    body.node("Quux", {"x"}, {"r"});
    Generator::open_output(body, "r");
    for (int i = 0; i < depth; ++i) {
      ModelBuilder outer(20);
      outer.node("Identity", {"c"}, {"go"});
      outer.graph(outer.node("Loop", {"", "", "x"}, {"r"}), "body", std::move(body));
      Generator::open_output(outer, "r");
      body = std::move(outer);
    }
    ModelBuilder& model = g.node(fmt::format("{} graphs inside of each other", depth), "Relu", {});
    model.graph(model.node("Loop", {"", "", "x"}, {"z"}), "body", std::move(body));
  }
}

void control_flow(Generator& g) {
  for (int inputs : {0, 1, 2, 4}) {
    for (int outputs : {0, 1, 3, 4}) {
      ModelBuilder& model = g.node(fmt::format("a body with {} inputs and {} outputs", inputs, outputs), "Loop", {});
      model.graph().node[0].input = {"", "", "x"};
      ModelBuilder body(20);
      for (int i = 0; i < inputs; ++i) body.input(fmt::format("i{}", i), i == 0 ? kInt64 : i == 1 ? kBool : kFloat, {});
      for (int i = 0; i < outputs; ++i) {
        body.node("Identity", {"x"}, {fmt::format("o{}", i)});
        body.output(fmt::format("o{}", i), kFloat, {});
      }
      model.graph(model.graph().node[0], "body", std::move(body));
    }
  }
  for (int64_t slices : {int64_t{0}, int64_t{2}, int64_t{-1}, kHuge[0], kHuge[1]}) {
    ModelBuilder& model = g.node(fmt::format("{} scanned inputs", slices), "Scan", {{"num_scan_inputs", {slices}}});
    ModelBuilder body(20);
    body.input("s", kFloat, {});
    body.node("Identity", {"s"}, {"o"});
    body.output("o", kFloat, {});
    model.graph(model.graph().node[0], "body", std::move(body));
  }
  for (const char* branch : {"then_branch", "else_branch"}) {
    ModelBuilder& model = g.node(fmt::format("only a {}", branch), "If", {}, {}, kBool, {});
    ModelBuilder body(20);
    body.node("Identity", {"x"}, {"o"});
    body.output("o", kBool, {});
    model.graph(model.graph().node[0], branch, std::move(body));
  }
}

void external_paths(Generator& g) {
  for (const char* path : {"/etc/passwd", "../secret", "a/../../secret", "", ".", "..", "/", "no such file",
                           "a//b/../../..", "//etc/passwd", "./../x"}) {
    for (const char* offset : {"0", "-1", "18446744073709551616", "x"}) {
      ModelBuilder& model = g.node(fmt::format("external data at '{}' from {}", path, offset), "Relu", {});
      proto::TensorProto& weight = model.weight<float>("w", kFloat, {1}, {1.0f});
      model.external(weight, {{"location", path}, {"offset", offset}, {"length", "4"}});
    }
  }
  for (const char* length : {"0", "3", "-4", "1e3", "99999999999999999999"}) {
    ModelBuilder& model = g.node(fmt::format("external data of length {}", length), "Relu", {});
    model.external(model.weight<float>("w", kFloat, {1}, {1.0f}), {{"location", "w.bin"}, {"length", length}});
  }
  for (const Ints& dims : {Ints{2}, Ints{0}, Ints{-1}, Ints{kHuge[0]}, Ints{kHuge[2], kHuge[2]}, Ints{kHuge[1], 0},
                           Ints{1, 1, 1, 1, 1, 1, 1, 1, 1}})
    g.node(fmt::format("a weight of {} dims, the first {}", dims.size(), dims[0]), "Relu", {})
        .weight<float>("w", kFloat, dims, {1.0f});
}

// The sentence of the refusal, or empty: the model ran.
std::string refusal_of(const ModelBuilder& builder) {
  try {
    const Model model = load_bytes(builder.bytes());
    Values inputs;
    for (const ValueInfo& info : model.inputs()) {
      Dims dims;
      for (const Dim& dim : info.dims) dims.push_back(dim.value < 0 ? 2 : dim.value);
      if (info.kind == Value::Kind::tensor) inputs[info.name] = full(dims, Scalar(1), info.dtype);
      if (info.kind == Value::Kind::strings)
        inputs[info.name] = Value::strings(dims, std::vector<std::string>(static_cast<size_t>(element_count(dims))));
    }
    for (const Value& output : model.run_values(inputs)) {
      if (output.is_tensor()) output.tensor().wait();
    }
  } catch (const Error& error) {
    return std::string(error.what()).empty() ? "(an error without a sentence)" : error.what();
  }
  return {};
}

TEST(BrokenModels, EachIsRefusedWithASentence) {
  Generator g;
  for (void (*family)(Generator&) :
       {axes, indices, lengths, windows, convolutions, types_counts_and_names, graphs, control_flow, external_paths})
    family(g);
  EXPECT_GE(g.models.size(), 500u);
  for (const Broken& broken : g.models) {
    const std::string refusal = refusal_of(broken.model);
    EXPECT_NE(refusal, "") << broken.what << " ran";
    EXPECT_EQ(refusal.find("defect of Tenon"), std::string::npos) << broken.what << ": " << refusal;
    EXPECT_NE(refusal.find('.'), std::string::npos) << broken.what << ": " << refusal;
  }
}

}  // namespace
}  // namespace tenon::onnx
