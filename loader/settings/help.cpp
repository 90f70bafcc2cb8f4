#include <algorithm>

#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

std::string padded(std::string_view text, size_t width) {
  std::string result(text);
  if (result.size() < width) result.append(width - result.size(), ' ');
  return result;
}

std::string values_of(const SettingRow& row) {
  if (!row.choices.empty()) return std::string(row.choices);
  if (row.type == "Count") return "number";
  if (row.type == "Bytes") return "bytes";
  if (row.type == "Names") return "names by comma";
  if (row.type == "Folders") return "folders by colon";
  if (row.type == "File") return "file";
  if (row.type == "LogSpec") return "topics and levels";
  return "text";
}

std::string default_of(const SettingRow& row) { return row.initial.empty() ? "(empty)" : std::string(row.initial); }

}  // namespace

std::string settings_help() {
  size_t width = 0;
  for (const SettingRow& row : setting_rows()) width = std::max(width, row.variable.size());
  std::string text =
      "A setting comes from, in this order: an argument, the environment, the config file, the default.\n"
      "The config file is the one TENON_CONFIG names, else tenon.toml in the user's config folder, then in "
      "/etc/tenon.\n\n";
  for (const SettingRow& row : setting_rows()) {
    text += fmt::format("{}  {}\n", padded(row.variable.empty() ? "(file only)" : row.variable, width), row.help);
    text += fmt::format("{}  in tenon.toml: {}; values: {}; default: {}\n", padded("", width), row.key, values_of(row),
                        default_of(row));
  }
  text += "\n[provider.<name>] sections of tenon.toml hold the settings of providers: key = \"value\".\n";
  return text;
}

std::string settings_markdown() {
  std::string text = "| variable | in tenon.toml | values | default |\n|---|---|---|---|\n";
  for (const SettingRow& row : setting_rows()) {
    const std::string variable = row.variable.empty() ? "" : fmt::format("`{}`", row.variable);
    text += fmt::format("| {} | `{}` | {} | {} |\n", variable, row.key, values_of(row), default_of(row));
  }
  return text;
}

}  // namespace tenon::loader
