// Translator: one ONNX operator in terms of Tenon's ops. Ordered lists hold the translators, one list per family
// (elementwise.cpp, reduce.cpp, ...). No code registers itself.
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
struct Translator {
  std::string_view name;
  int32_t since = 1;  // version of the opset, not of the operator
  // Returns the outputs in the operator's order. Outputs that nobody wants may be undefined.
  TensorList (*translate)(NodeContext& node) = nullptr;
  // Why the node cannot run, by its attributes alone; empty if it can. May be NULL.
  std::string (*why_not)(const Node& node) = nullptr;
  // The outputs depend on the shapes of the inputs, not on their elements.
  bool reads_shapes_only = false;
  int32_t until = kNewestOpset;
  std::string_view domain = {};  // empty: ai.onnx
  // Instead of `translate`, of an operator whose inputs or outputs are no tensors of numbers.
  ValueList (*translate_values)(NodeContext& node) = nullptr;
  // `translate` sees f16 and bf16 inputs as f32, and its results are rounded to the type of the first input: for
  // operators of several steps, whose numbers on the way need not be f16.
  bool wide = false;
};

constexpr Translator wide(Translator row) {
  row.wide = true;
  return row;
}

// A row of an operator on values of any kind.
constexpr Translator on_values(std::string_view name, int32_t since, ValueList (*translate)(NodeContext& node),
                               std::string_view domain = {}) {
  return {name, since, nullptr, nullptr, false, kNewestOpset, domain, translate};
}
// A row of an operator of another domain than ai.onnx.
constexpr Translator of_domain(std::string_view domain, std::string_view name, int32_t since,
                               TensorList (*translate)(NodeContext& node),
                               std::string (*why_not)(const Node& node) = nullptr) {
  return {name, since, translate, why_not, false, kNewestOpset, domain, nullptr};
}

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
// Operators that also have a row of another list, which takes numbers: the form for nodes with strings.
std::span<const Translator> text_forms();

// The version of ai.onnx whose rules an operator of com.microsoft follows that is a copy of ai.onnx's; 0: it is none.
int32_t copied_version(std::string_view domain, std::string_view op_type);

// The translator for `node`, or NULL and a sentence about what is missing.
const Translator* find_translator(const Node& node, std::string* reason);
// The form of text_forms() for `node`; null: it has none.
const Translator* find_text_translator(const Node& node);

}  // namespace tenon::onnx
