#include "sdk/onnx/translate/translator.h"

#include <algorithm>
#include <tuple>

#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/translate/microsoft.h"

namespace tenon::onnx {
namespace {

using Rows = std::span<const Translator>;

const std::vector<Rows>& families() {
  static const std::vector<Rows> all = {
      control_translators(),
      detection_translators(),
      microsoft_array_translators(),
      microsoft_attention_translators(),
      microsoft_fused_translators(),
      microsoft_moe_translators(),
      microsoft_nchwc_translators(),
      microsoft_packed_translators(),
      microsoft_quantised_translators(),
      microsoft_translators(),
      elementwise_translators(),
      index_translators(),
      layer_translators(),
      loss_translators(),
      map_translators(),
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
      tokenizer_translators(),
      svm_translators(),
      training_translators(),
      transformer_translators(),
      tree_translators(),
      vision_translators(),
      window_translators(),
  };
  return all;
}

// An operator of com.microsoft that a translator of ai.onnx serves, and the version of ai.onnx that it follows.
struct Copy {
  std::string_view name;
  int32_t version;
};
constexpr Copy kCopies[] = {{"DequantizeLinear", 21}, {"GatherND", 12}, {"GridSample", 16}, {"Pad", 13},
                            {"QuantizeLinear", 21},   {"Range", 11},    {"Trilu", 14}};

}  // namespace

int32_t copied_version(std::string_view domain, std::string_view op_type) {
  if (domain != kMicrosoft) return 0;
  const auto* found =
      std::find_if(std::begin(kCopies), std::end(kCopies), [&](const Copy& copy) { return copy.name == op_type; });
  return found == std::end(kCopies) ? 0 : found->version;
}

const Translator* find_text_translator(const Node& node) {
  for (const Translator& row : text_forms()) {
    if (row.op_type == node.op_type && row.domain == node.domain && node.version >= row.since &&
        node.version <= row.until)
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
      if (row.op_type != node.op_type || row.domain != node.domain) continue;
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
      list.push_back({row.domain.empty() ? "ai.onnx" : row.domain, row.op_type, row.since, row.until});
  }
  std::sort(list.begin(), list.end(), [](const SupportedOperator& a, const SupportedOperator& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return list;
}

}  // namespace tenon::onnx
