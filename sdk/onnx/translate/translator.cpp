#include "sdk/onnx/translate/translator.h"

#include <algorithm>
#include <tuple>

#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {
namespace {

using Rows = std::span<const Translator>;

const std::vector<Rows>& families() {
  static const std::vector<Rows> all = {
      control_translators(),
      detection_translators(),
      microsoft_attention_translators(),
      microsoft_quantised_translators(),
      microsoft_translators(),
      elementwise_translators(),
      index_translators(),
      layer_translators(),
      loss_translators(),
      ml_translators(),
      quantize_translators(),
      random_translators(),
      recurrent_translators(),
      reduce_translators(),
      resize_translators(),
      sequence_model_translators(),
      sequence_translators(),
      shape_translators(),
      signal_translators(),
      text_translators(),
      svm_translators(),
      training_translators(),
      transformer_translators(),
      tree_translators(),
      vision_translators(),
      window_translators(),
  };
  return all;
}

// Operators that nothing translates, and why.
struct Refused {
  std::string_view domain, name, why;
};
constexpr Refused kRefused[] = {
    {"ai.onnx.ml", "CastMap", "Tenon has no maps; give the model the numbers themselves, as a tensor."},
    {"ai.onnx.ml", "DictVectorizer", "Tenon has no maps; give the model the vector that this operator makes."},
    {"ai.onnx.ml", "ZipMap",
     "Tenon has no maps; export the model without it (skl2onnx: options={'zipmap': False}), and its input, the matrix "
     "of "
     "probabilities, is the output."},
};

}  // namespace

const Translator* find_text_translator(const Node& node) {
  for (const Translator& row : text_forms()) {
    if (row.name == node.op_type && row.domain == node.domain && node.version >= row.since && node.version <= row.until)
      return &row;
  }
  return nullptr;
}

const Translator* find_translator(const Node& node, std::string* reason) {
  const auto to = node.attributes.find("to");
  if (node.op_type == "Cast" && node.domain.empty() && to != node.attributes.end() && to->second.i == kOnnxString)
    return find_text_translator(node);
  std::string versions;
  bool domain_known = false;
  for (Rows rows : families()) {
    for (const Translator& row : rows) {
      domain_known = domain_known || row.domain == node.domain;
      if (row.name != node.op_type || row.domain != node.domain) continue;
      if (node.version < row.since || node.version > row.until) {
        versions += fmt::format("{}{} to {}", versions.empty() ? "" : ", ", row.since, row.until);
        continue;
      }
      *reason = row.why_not != nullptr ? row.why_not(node) : std::string();
      return reason->empty() ? &row : nullptr;
    }
  }
  if (!domain_known) {
    *reason = fmt::format("operators of the domain '{}' are not known.", node.domain);
    return nullptr;
  }
  for (const Refused& row : kRefused) {
    if (row.name != node.op_type || row.domain != node.domain) continue;
    *reason = row.why;
    return nullptr;
  }
  *reason = versions.empty()
                ? "there is no translation of this operator."
                : fmt::format("it is translated for the opset versions {}, but the model imports version {}.", versions,
                              node.version);
  return nullptr;
}

std::vector<SupportedOperator> supported_operators() {
  std::vector<SupportedOperator> list;
  for (Rows rows : families()) {
    for (const Translator& row : rows)
      list.push_back({row.domain.empty() ? "ai.onnx" : row.domain, row.name, row.since, row.until});
  }
  std::sort(list.begin(), list.end(), [](const SupportedOperator& a, const SupportedOperator& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return list;
}

}  // namespace tenon::onnx
