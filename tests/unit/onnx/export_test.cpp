// Functions that are written as models, and functions that are refused.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {
namespace {

std::string error_of(const ExportedFunction& function, const TensorList& examples, const ExportOptions& options = {}) {
  try {
    export_bytes(function, examples, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

Tensor counted(const Dims& dims) { return reshape(arange(Scalar(element_count(dims)), DType::f32), dims); }

TEST(Export, AFunctionComesBackAsAModel) {
  const Tensor weight = sub(counted({4, 3}), Scalar(5.0)), bias = counted({3});
  const auto layer = [&](const TensorList& in) { return TensorList{relu(linear(in[0], t(weight), bias)), in[0]}; };
  ExportOptions options;
  options.input_names = {"x"};
  options.output_names = {"y", "same"};
  options.parameters = {{"layer.weight", weight}};
  const std::string bytes = export_bytes(layer, {zeros({2, 4})}, options);
  expect_part(bytes, "layer.weight");
  const Model model = load_bytes(bytes);
  expect_part(model.info().producer, "tenon ");
  EXPECT_EQ(model.info().opset, 17);
  for (const int64_t batch : {2, 7}) {
    const Tensor x = counted({batch, 4});
    const Inputs found = model.run_named({{"x", x}});
    EXPECT_TRUE(allclose(found.at("y"), layer({x})[0]).item<bool>());
    EXPECT_TRUE(equal(found.at("same"), x).item<bool>());
  }
}

TEST(Export, SizesStayOpenByWhichTheFunctionDidNotDecide) {
  const auto dims_of = [](const ExportedFunction& function, const ExportOptions& options = {}) {
    const Model model = load_bytes(export_bytes(function, {zeros({6, 4})}, options));
    return to_string(model.inputs()[0]) + " -> " + to_string(model.outputs()[0]);
  };
  const auto doubled = [](const TensorList& in) { return TensorList{mul(in[0], Scalar(2.0))}; };
  EXPECT_EQ(dims_of(doubled), "f32[input_0, input_1] -> f32[input_0, input_1]");
  // If a function reads a size as a number, the model is valid only for this number.
  const auto scaled = [](const TensorList& in) {
    return TensorList{mul(in[0], Scalar(static_cast<double>(in[0].dim(1))))};
  };
  EXPECT_EQ(dims_of(scaled), "f32[input_0, 4] -> f32[input_0, 4]");
  ExportOptions options;
  options.dynamic_axes = {{"input", {{-2, "batch"}}}};
  EXPECT_EQ(dims_of(doubled, options), "f32[batch, 4] -> f32[batch, 4]");
  options.dynamic_axes->clear();
  EXPECT_EQ(dims_of(doubled, options), "f32[6, 4] -> f32[6, 4]");
  options.dynamic_axes = {{"input", {{1, "width"}}}};
  expect_part(error_of(scaled, {zeros({6, 4})}, options),
              "axis 1 of input 'input' cannot be dynamic: the program only works for size 4.");
}

TEST(Export, OpsThatOnnxLacksAreRefusedTogether) {
  const auto function = [](const TensorList& in) {
    const Tensor whole = cast(in[0], DType::i64);
    return TensorList{lgamma(in[0]), add(gcd(whole, whole), gcd(whole, whole)), relu(in[0])};
  };
  const std::string text = error_of(function, {zeros({3})});
  expect_part(text, "export: 2 kinds of ops cannot be written as ONNX.");
  expect_part(text, "\n  lgamma: opset 17 of ONNX has no such operator");
  expect_part(text, "\n  gcd: ");
  EXPECT_EQ(text.find("relu"), std::string::npos) << text;
}

TEST(Export, WhatAModelHasNotIsRefused) {
  Tensor state = zeros({2});
  const auto counts = [&](const TensorList& in) {
    add_(state, Scalar(1));
    return TensorList{add(in[0], state)};
  };
  expect_part(error_of(counts, {zeros({2})}), "it writes a tensor from outside of shape [2]");
  EXPECT_TRUE(equal(state, zeros({2})).item<bool>());
  const auto writes = [](const TensorList& in) {
    Tensor x = in[0];
    return TensorList{add_(x, Scalar(1))};
  };
  expect_part(error_of(writes, {zeros({2})}), "it writes its argument 0");
  const auto draws = [](const TensorList& in) { return TensorList{add(in[0], rand({2}))}; };
  expect_part(error_of(draws, {zeros({2})}), "it draws random numbers");
  const auto reads = [](const TensorList& in) { return TensorList{mul(in[0], Scalar(in[0].item().to_double()))}; };
  expect_part(error_of(reads, {zeros({1})}), "lets the host see the elements");
  const auto narrow_numbers = [](const TensorList& in) { return TensorList{cast(in[0], DType::f8e4m3fn)}; };
  expect_part(error_of(narrow_numbers, {zeros({2})}), "cast: opset 17 of ONNX has no f8e4m3fn.");
}

TEST(Export, NamesAndAxesAreChecked) {
  const auto same = [](const TensorList& in) { return TensorList{neg(in[0])}; };
  ExportOptions options;
  options.input_names = {"x", "y"};
  expect_part(error_of(same, {zeros({2})}, options), "there are 2 names for 1 inputs.");
  options.input_names = {"x"};
  options.output_names = {"x"};
  expect_part(error_of(same, {zeros({2})}, options), "two inputs or outputs have the name 'x'.");
  options.output_names = {""};
  expect_part(error_of(same, {zeros({2})}, options), "the name of an input or output is empty.");
  options.output_names.clear();
  options.dynamic_axes = {{"z", {{0, ""}}}};
  expect_part(error_of(same, {zeros({2})}, options), "dynamic_axes names 'z', which is not an input.");
  options.dynamic_axes = {{"x", {{1, ""}}}};
  expect_part(error_of(same, {zeros({2})}, options), "input 'x' of rank 1 has no axis 1 to be dynamic.");
  EXPECT_THROW(export_model(same, {zeros({2})}, "/no/such/folder/model.onnx"), Error);
}

// Exceptions of the function itself reach the caller unchanged.
TEST(Export, WhatTheFunctionThrowsPasses) {
  const auto throws = [](const TensorList&) -> TensorList { throw std::runtime_error("mine"); };
  EXPECT_THROW(export_bytes(throws, {zeros({2})}), std::runtime_error);
}

TEST(Export, TheTableNamesOpsOnce) {
  std::set<std::string_view> seen;
  for (const ExportedOp& row : exported_ops()) {
    EXPECT_TRUE(seen.insert(row.op).second) << row.op;
    EXPECT_FALSE(row.onnx.empty()) << row.op;
  }
  EXPECT_GT(seen.size(), 100u);
}

}  // namespace
}  // namespace tenon::onnx
