#include "loader/settings/value.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};
constexpr Unit units[] = {
    {"", 1},
    {"B", 1},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"KB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
};

}  // namespace

Reason parse_text(std::string_view text, std::string& value) {
  value = text;
  return {};
}

bool is_provider_name(std::string_view name) {
  return !name.empty() && name.size() < sizeof(ep_plugin_note::name) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

Reason parse_names(std::string_view text, std::vector<std::string>& value) {
  std::vector<std::string> names = split(text, ',');
  for (const std::string& name : names) {
    if (!is_provider_name(name)) {
      return fmt::format("'{}' is not a provider's name: 1 to 31 lower-case letters, digits and underscores", name);
    }
  }
  value = std::move(names);
  return {};
}

Reason parse_folders(std::string_view text, std::vector<std::string>& value) {
  std::vector<std::string> folders = split(text, ':');
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/'))
      return fmt::format("the folder '{}' is relative; write it from the root, beginning with /", folder);
  }
  value = std::move(folders);
  return {};
}

Reason parse_count(std::string_view text, int32_t& value) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return fmt::format("it must be a whole number from 0 to {}", std::numeric_limits<int32_t>::max());
  }
  value = number;
  return {};
}

Reason parse_bytes(std::string_view text, uint64_t& value) {
  const Reason reason =
      "it must be a number of bytes, with K, KiB, M, MiB, G, GiB, T, TiB (powers of 1024) or KB, MB, GB, TB "
      "(powers of 1000) behind it: 512MiB";
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return reason;
  std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  const auto* unit =
      std::find_if(std::begin(units), std::end(units), [&](const Unit& u) { return u.suffix == suffix; });
  if (unit == std::end(units) || __builtin_mul_overflow(number, unit->factor, &number)) return reason;
  value = number;
  return {};
}

Reason parse_log_spec(std::string_view text, std::string& value) {
  const Result<uint64_t> levels = parse_log_levels(text);
  if (!levels.ok()) return levels.status().message();
  value = text;
  return {};
}

std::vector<std::string> choice_words(std::string_view choices) { return split(choices, ','); }

Reason parse_choice(std::string_view text, std::string_view choices, uint8_t& value) {
  const std::vector<std::string> words = choice_words(choices);
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) return fmt::format("it may be one of {}", choices);
  value = static_cast<uint8_t>(found - words.begin());
  return {};
}

}  // namespace tenon::loader
