#include "sdk/onnx/translate/translator.h"

#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {
namespace {

using Rows = std::span<const Translator>;

const std::vector<Rows>& families() {
  static const std::vector<Rows> all = {elementwise_translators(), reduce_translators(), shape_translators(),
                                        index_translators(),       layer_translators(),  loss_translators(),
                                        quantize_translators(),    resize_translators(), window_translators(),
                                        recurrent_translators(),   signal_translators(), random_translators()};
  return all;
}

}  // namespace

const Translator* find_translator(const Node& node, std::string* reason) {
  if (!node.domain.empty()) {
    *reason = fmt::format("operators of the domain '{}' are not known.", node.domain);
    return nullptr;
  }
  std::string versions;
  for (Rows rows : families()) {
    for (const Translator& row : rows) {
      if (row.name != node.op_type) continue;
      if (node.version < row.since || node.version > row.until) {
        versions += fmt::format("{}{} to {}", versions.empty() ? "" : ", ", row.since, row.until);
        continue;
      }
      *reason = row.why_not != nullptr ? row.why_not(node) : std::string();
      return reason->empty() ? &row : nullptr;
    }
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
    for (const Translator& row : rows) list.push_back({"ai.onnx", row.name, row.since, row.until});
  }
  std::sort(list.begin(), list.end(), [](const SupportedOperator& a, const SupportedOperator& b) {
    return a.name != b.name ? a.name < b.name : a.since < b.since;
  });
  return list;
}

}  // namespace tenon::onnx
