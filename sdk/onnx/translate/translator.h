// Translator: how one ONNX operator is written in Tenon's functional API. The rows stand in ordered lists, one per
// family (elementwise.cpp, reduce.cpp, ...); nothing registers itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

class NodeContext;

// The newest version of ai.onnx whose changes the rows know.
constexpr int32_t kNewestOpset = 20;

// One operator, for a range of opset versions. Versions outside every row of the operator are refused at load.
struct Translator {
  std::string_view name;
  int32_t since = 1;  // of the opset, not of the operator
  // The outputs, in the operator's order; those nobody wants may be undefined.
  TensorList (*translate)(NodeContext& node) = nullptr;
  // Why this node cannot be run, judged by its attributes alone; empty if it can. May be null.
  std::string (*why_not)(const Node& node) = nullptr;
  // The outputs tell of the inputs' shapes alone, not of their elements.
  bool reads_shapes_only = false;
  int32_t until = kNewestOpset;
};

std::span<const Translator> elementwise_translators();
std::span<const Translator> reduce_translators();
std::span<const Translator> shape_translators();
std::span<const Translator> index_translators();
std::span<const Translator> layer_translators();
std::span<const Translator> loss_translators();
std::span<const Translator> quantize_translators();
std::span<const Translator> resize_translators();
std::span<const Translator> window_translators();

// The row of a Conv, MatMul or Gemm that also adds and activates (importer/fuse.h): input 2 the bias, 3 another value
// to add, and Node::epilogue.
const Translator* fused_translator(std::string_view op_type);

// The row for `node`, or null and a sentence that says what is missing.
const Translator* find_translator(const Node& node, std::string* reason);

}  // namespace tenon::onnx
