#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/ops/op_call.h"
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
    case OpForm::composite: return "composite";
  }
  return "";
}

int list_onnx(bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"operator", "domain", "opset versions"}};
  for (const onnx::SupportedOperator& op : onnx::supported_operators()) {
    list.push_back({{"domain", op.domain}, {"name", op.name}, {"since", op.since}, {"until", op.until}});
    rows.push_back(
        {std::string(op.name), std::string(op.domain), std::to_string(op.since) + " to " + std::to_string(op.until)});
  }
  if (as_json) {
    std::printf("%s\n", nlohmann::json{{"operators", list}}.dump(2).c_str());
  } else {
    print_table(rows);
  }
  return 0;
}

}  // namespace

int list_ops(const OpsOptions& options) {
  if (options.onnx) return list_onnx(options.json);
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"op", "form"}};
  for (const OpInfo& op : op_table()) {
    list.push_back({{"name", op.name}, {"form", form_name(op.form)}});
    rows.push_back({std::string(op.name), form_name(op.form)});
  }
  if (options.json) {
    std::printf("%s\n", nlohmann::json{{"ops", list}}.dump(2).c_str());
  } else {
    print_table(rows);
  }
  return 0;
}

}  // namespace tenon::cli
