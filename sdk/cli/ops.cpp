#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/ops/call.h"
#include "core/ops/op_call.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/table.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

const char* form_name(OpForm form) {
  switch (form) {
    case OpForm::elementwise: return "elementwise";
    case OpForm::view: return "view";
    case OpForm::kernel: return "kernel";
    case OpForm::builtin: return "builtin";
    case OpForm::composite: return "composite";
  }
  return "";
}

using Rows = std::vector<std::vector<std::string>>;

// Prints a JSON document with `list` under `key`, or the rows.
int print_list(const OpsOptions& options, const char* key, const nlohmann::json& list, const Rows& rows) {
  if (options.json) {
    std::printf("%s\n", nlohmann::json{{key, list}}.dump(2).c_str());
  } else {
    print_table(rows);
  }
  return 0;
}

[[noreturn]] void no_operator(const std::string& name) {
  std::vector<std::string> names;
  for (const onnx::SupportedOperator& op : onnx::supported_operators()) names.emplace_back(op.name);
  const std::string nearest = nearest_word(name, names);
  throw Error(Code::not_found, fmt::format("There is no ONNX operator called '{}' that models may use{}", name,
                                           nearest.empty() ? "." : fmt::format("; did you mean {}?", nearest)));
}

// Lists all operators, or the named one.
int list_onnx(const OpsOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  Rows rows = {{"operator", "domain", "opset versions"}};
  for (const onnx::SupportedOperator& op : onnx::supported_operators()) {
    if (!options.name.empty() && op.name != options.name) continue;
    list.push_back({{"domain", op.domain}, {"name", op.name}, {"since", op.since}, {"until", op.until}});
    rows.push_back({std::string(op.name), std::string(op.domain), fmt::format("{} to {}", op.since, op.until)});
  }
  if (list.empty()) no_operator(options.name);
  return print_list(options, "operators", list, rows);
}

// Shows how to call the op and what the op returns.
int show_op(const OpsOptions& options) {
  const DynamicOp& op = find_op(options.name);
  std::vector<std::string> signatures;
  for (const Signature& signature : op.signatures) signatures.emplace_back(signature.text);
  if (options.json) {
    std::printf("%s\n", nlohmann::json{{"name", op.name}, {"doc", op.doc}, {"signatures", signatures}}.dump(2).c_str());
    return 0;
  }
  for (const std::string& signature : signatures) std::printf("%s\n", signature.c_str());
  std::printf("  %s\n", std::string(op.doc).c_str());
  return 0;
}

}  // namespace

int list_ops(const OpsOptions& options) {
  if (options.onnx) return list_onnx(options);
  if (!options.name.empty()) return show_op(options);
  nlohmann::json list = nlohmann::json::array();
  Rows rows = {{"op", "form"}};
  for (const OpInfo& op : op_table()) {
    list.push_back({{"name", op.name}, {"form", form_name(op.form)}});
    rows.push_back({std::string(op.name), form_name(op.form)});
  }
  return print_list(options, "ops", list, rows);
}

}  // namespace tenon::cli
