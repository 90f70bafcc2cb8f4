// Translator: one ONNX operator in terms of Tenon's ops. Each family (elementwise.cpp, reduce.cpp, ...) has one ordered
// list of translators. No code registers itself.
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

// The newest version of ai.onnx whose changes the translators know.
constexpr int32_t kNewestOpset = 28;

// One operator for a range of opset versions. load() refuses versions outside all ranges of the operator.
// A row has either `translate` or `translate_values`.
struct Translator {
  std::string_view domain = {};  // empty: ai.onnx
  std::string_view op_type;
  int32_t since = 1;  // version of the opset, not of the operator
  int32_t until = kNewestOpset;
  // Returns the outputs in the operator's order. Unused outputs may be undefined.
  TensorList (*translate)(NodeContext& node) = nullptr;
  // Used instead of `translate` for operators with inputs or outputs that are not tensors of numbers.
  ValueList (*translate_values)(NodeContext& node) = nullptr;
  // Why the node cannot run, judged only by its attributes; empty if it can. May be NULL.
  std::string (*why_not)(const Node& node) = nullptr;
  // True if the outputs depend on the shapes of the inputs, not on their elements.
  bool reads_shapes_only = false;
  // True: `translate` sees f16 and bf16 inputs as f32, and its results are rounded to the type of the first input. For
  // operators of several steps whose intermediate values need not be f16.
  bool wide = false;
};

std::span<const Translator> control_translators();
std::span<const Translator> detection_translators();
std::span<const Translator> elementwise_translators();
std::span<const Translator> reduce_translators();
std::span<const Translator> sequence_model_translators();
std::span<const Translator> sequence_translators();
std::span<const Translator> shape_translators();
std::span<const Translator> index_translators();
std::span<const Translator> layer_translators();
std::span<const Translator> loss_translators();
std::span<const Translator> quantize_translators();
std::span<const Translator> microsoft_array_translators();
std::span<const Translator> microsoft_attention_translators();
std::span<const Translator> microsoft_fused_translators();
std::span<const Translator> microsoft_moe_translators();
std::span<const Translator> microsoft_nchwc_translators();
std::span<const Translator> microsoft_packed_translators();
std::span<const Translator> microsoft_quantised_translators();
std::span<const Translator> microsoft_translators();
std::span<const Translator> map_translators();
std::span<const Translator> ml_translators();
std::span<const Translator> resize_translators();
std::span<const Translator> text_translators();
std::span<const Translator> tokenizer_translators();
std::span<const Translator> training_translators();
std::span<const Translator> transformer_translators();
std::span<const Translator> svm_translators();
std::span<const Translator> tree_translators();
std::span<const Translator> vision_translators();
std::span<const Translator> recurrent_translators();
std::span<const Translator> signal_translators();
std::span<const Translator> random_translators();
std::span<const Translator> window_translators();
// Rows for nodes with strings. The operators also have a row for numbers in another list.
std::span<const Translator> text_forms();

// The version of ai.onnx whose rules a copied operator of com.microsoft follows; 0 if the operator is not a copy.
int32_t copied_version(std::string_view domain, std::string_view op_type);

// The translator for `node`, or NULL with the reason as a sentence.
const Translator* find_translator(const Node& node, std::string* reason);
// The row of text_forms() for `node`; null if it has none.
const Translator* find_text_translator(const Node& node);

}  // namespace tenon::onnx
