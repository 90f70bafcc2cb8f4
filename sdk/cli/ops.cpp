#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/interpreter/support.h"
#include "core/ops/call.h"
#include "core/ops/libraries.h"
#include "core/ops/op_call.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/table.h"
#include "sdk/onnx/onnx.h"
#include "sdk/report/json_text.h"

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
    std::printf("%s\n", report::json_text(nlohmann::json{{key, list}}).c_str());
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

// ---- who computes an op in which dtype ----

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int32_t id = 1; dtype_info(static_cast<DType>(id)).bits != 0; ++id) {
    if (dtype_info(static_cast<DType>(id)).bits >= 8) all.push_back(static_cast<DType>(id));
  }
  return all;
}

// Returns the devices to ask: those of --device, or the first device of each provider that opens.
std::vector<Device> asked_devices(const OpsOptions& options) {
  std::vector<Device> devices;
  for (const std::string& spelling : options.devices) devices.emplace_back(spelling);
  if (!devices.empty()) return devices;
  std::string last;
  for (const loader::ListedDevice& listed : loader::list_devices()) {
    if (!listed.info.usable() || listed.provider == last) continue;
    try {
      devices.emplace_back(listed.spelling);
      last = listed.provider;
    } catch (const Error&) {
      continue;  // `tenon doctor` reports why it does not open
    }
  }
  return devices;
}

char letter_of(Served served) { return "ndh."[static_cast<size_t>(served)]; }

// Returns a letter for each dtype ("..........nnnn"); "?" if no call of the op was found.
std::string letters(const OpSupport& support) {
  std::string text;
  for (const DTypeSupport& one : support.dtypes) text += letter_of(one.served);
  return support.call.empty() ? "?" : text;
}

nlohmann::json support_json(const OpSupport& support) {
  nlohmann::json dtypes = nlohmann::json::object();
  for (const DTypeSupport& one : support.dtypes) {
    nlohmann::json& entry = dtypes[std::string(dtype_name(one.dtype))];
    entry["served"] = served_name(one.served);
    if (!one.reason.empty()) entry["reason"] = one.reason;
  }
  return {{"call", support.call}, {"dtypes", dtypes}};
}

void print_legend(const std::vector<DType>& dtypes) {
  std::string names;
  for (const DType dtype : dtypes) names += fmt::format(" {}", dtype_name(dtype));
  std::printf(
      "\nA letter per dtype:%s\n  n: native, d: decomposed into simpler primitives, h: on the host,"
      " .: not defined, ?: no call of the op could be made\n",
      names.c_str());
}

// Returns the ops of the built-in list, then those of each library.
std::vector<const OpInfo*> all_rows() {
  std::vector<const OpInfo*> rows;
  for (const OpInfo& op : op_table()) rows.push_back(&op);
  for (const OpLibrary* library : op_libraries()) {
    for (const OpInfo& op : library->rows) rows.push_back(&op);
  }
  return rows;
}

// Lists all ops with their support on each device.
int list_support(const OpsOptions& options) {
  const std::vector<Device> devices = asked_devices(options);
  const std::vector<DType> dtypes = all_dtypes();
  nlohmann::json list = nlohmann::json::array();
  Rows rows = {{"op", "form"}};
  for (const Device& device : devices) rows[0].push_back(device.spelling());
  for (const OpInfo* each : all_rows()) {
    const OpInfo& op = *each;
    nlohmann::json one = {{"name", op.name}, {"form", form_name(op.form)}};
    std::vector<std::string>& row = rows.emplace_back();
    row = {std::string(op.name), form_name(op.form)};
    for (const Device& device : devices) {
      const OpSupport support = ask_support(find_op(op.name), device, dtypes);
      if (options.json) one["devices"][device.spelling()] = support_json(support);
      row.push_back(letters(support));
    }
    list.push_back(std::move(one));
  }
  print_list(options, "ops", list, rows);
  if (!options.json) print_legend(dtypes);
  return 0;
}

// Prints the dtypes for which a device computes the op, and the reason if not natively.
void print_support(const OpSupport& support, const Device& device) {
  if (support.call.empty()) {
    std::printf("  %s: no call of the op could be made\n", device.spelling().c_str());
    return;
  }
  std::printf("  %s, asked about %s:\n", device.spelling().c_str(), support.call.c_str());
  Rows rows;
  for (const DTypeSupport& one : support.dtypes) {
    const std::string reason = one.reason.substr(0, one.reason.find('\n'));
    rows.push_back({"   ", std::string(dtype_name(one.dtype)), std::string(served_name(one.served)), reason});
  }
  print_table(rows);
}

void print_indented(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    std::printf("%s%.*s\n", line.empty() ? "" : "  ", static_cast<int>(line.size()), line.data());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Shows how to call the op, its results, and the devices that compute it.
int show_op(const OpsOptions& options) {
  const DynamicOp& op = find_op(options.name);
  std::vector<std::pair<Device, OpSupport>> supports;
  for (const Device& device : asked_devices(options))
    supports.emplace_back(device, ask_support(op, device, all_dtypes()));
  std::vector<std::string> signatures;
  for (const Signature& signature : op.signatures) signatures.emplace_back(signature.text);
  if (options.json) {
    nlohmann::json one = {{"name", op.name}, {"doc", op.doc}, {"signatures", signatures}};
    for (const auto& [device, support] : supports) one["devices"][device.spelling()] = support_json(support);
    std::printf("%s\n", report::json_text(one).c_str());
    return 0;
  }
  for (const std::string& signature : signatures) std::printf("%s\n", signature.c_str());
  print_indented(op.doc);
  for (const auto& [device, support] : supports) print_support(support, device);
  return 0;
}

}  // namespace

int list_ops(const OpsOptions& options) {
  if (options.onnx) return list_onnx(options);
  for (const std::string& library : options.libraries) load_ops(library);
  if (!options.name.empty()) return show_op(options);
  return list_support(options);
}

}  // namespace tenon::cli
