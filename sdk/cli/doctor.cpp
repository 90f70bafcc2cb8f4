#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "loader/loader.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/device_table.h"
#include "sdk/cli/table.h"
#include "sdk/report/report.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

std::string text(const json& value) { return value.get<std::string>(); }

// Prints `words` with every line indented.
void print_indented(const std::string& words, const char* indent) {
  size_t at = 0;
  while (at < words.size()) {
    const size_t end = std::min(words.find('\n', at), words.size());
    std::printf("%s%s\n", indent, words.substr(at, end - at).c_str());
    at = end + 1;
  }
}

void print_remedy(const std::string& remedy, const char* indent) {
  if (!remedy.empty()) print_indented(fmt::format("What to do: {}", remedy), indent);
}

void print_list(const json& candidates) {
  for (const json& candidate : candidates) {
    const std::string path = text(candidate["path"]);
    std::printf("  %s %s [%s, %s] %s\n", text(candidate["provider"]).c_str(), text(candidate["version"]).c_str(),
                text(candidate["stage"]).c_str(), text(candidate["code"]).c_str(),
                path.empty() ? "in the program" : path.c_str());
    print_indented(text(candidate["sentence"]), "    ");
    print_remedy(text(candidate["remedy"]), "    ");
  }
}

void print_candidates(const json& report) {
  std::printf("Plug-ins\n");
  for (const json& folder : report["folders"]) {
    std::printf("  %s (%s): ", text(folder["path"]).c_str(), text(folder["source"]).c_str());
    if (text(folder["why_not"]).empty()) {
      std::printf("%d found\n", folder["candidates"].get<int>());
    } else {
      std::printf("not searched: %s\n", text(folder["why_not"]).c_str());
    }
  }
  print_list(report["candidates"]);
  if (report["collectives"].empty()) return;
  std::printf("\nPlug-ins that carry data between processes\n");
  print_list(report["collectives"]);
}

void print_devices(const json& report, const std::vector<loader::ListedDevice>& devices) {
  std::printf("\nDevices\n");
  std::vector<std::vector<std::string>> rows = device_rows(devices, text(report["default_device"]));
  for (std::vector<std::string>& row : rows) row.front().insert(0, "  ");
  if (devices.empty()) {
    std::printf("  none\n");
  } else {
    print_table(rows);
  }
  for (const json& device : report["devices"]) {
    if (text(device["remedy"]).empty()) continue;
    print_remedy(fmt::format("{} ({})", text(device["remedy"]), text(device["device"])), "  ");
  }
  for (const json& finding : report["findings"]) {
    print_indented(text(finding["sentence"]), "  ");
    print_remedy(text(finding["remedy"]), "    ");
  }
}

void print_settings(const json& report) {
  std::printf("\nSettings (argument > environment > config file > default)\n");
  std::vector<std::vector<std::string>> rows;
  for (const json& row : report["settings"]) {
    const std::string value = text(row["value"]), where = text(row["where"]);
    rows.push_back({fmt::format("  {}", text(row["key"])), value.empty() ? "-" : value,
                    text(row["level"]) + (where.empty() ? "" : fmt::format(" {}", where))});
  }
  print_table(rows);
  for (const json& file : report["config_files"]) std::printf("  read %s\n", text(file).c_str());
  for (const json& warning : report["warnings"]) std::printf("  warning: %s\n", text(warning).c_str());
  if (report["privileged"].get<bool>())
    std::printf("  This process is privileged: environment and user folders are ignored.\n");
  if (!text(report["settings_error"]).empty()) std::printf("  error: %s\n", text(report["settings_error"]).c_str());
}

}  // namespace

int doctor(const ReportOptions& options) {
  apply(options);
  const json found = report::doctor_json();
  const bool healthy = text(found["default_device_error"]).empty();
  if (options.json) {
    std::printf("%s\n", report::json_text(found).c_str());
    return healthy ? 0 : 1;
  }
  print_candidates(found);
  print_devices(found, loader::list_devices());
  print_settings(found);
  if (healthy) {
    std::printf("\nDefault device: %s, by %s\n", text(found["default_device"]).c_str(),
                text(found["default_device_by"]).c_str());
  } else {
    std::printf("\nDefault device: none\n");
    print_indented(text(found["default_device_error"]), "  ");
    print_remedy(text(found["default_device_remedy"]), "  ");
  }
  return healthy ? 0 : 1;
}

}  // namespace tenon::cli
