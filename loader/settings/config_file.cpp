#include "loader/settings/config_file.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "primitives/text/format.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <cerrno>
#include <optional>

#include "loader/trust/trust.h"

namespace tenon::loader {
namespace {

constexpr uint64_t largest_file = 1 << 20;

Result<std::string> read_all(const CheckedFile& file) {
  if (file.identity.size > largest_file) {
    return Status(Code::invalid_argument, fmt::format("the config file '{}' is larger than 1 MiB.", file.path));
  }
  std::string text(file.identity.size, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = read(file.descriptor.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

// /dev/null counts as an empty file, with any owner: it is the usual way to say "none".
bool is_null_device(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) return fmt::format("{:g}", number->get());
  return std::nullopt;
}

std::optional<std::string> node_text(const toml::node& node, const std::string& key) {
  const toml::array* list = node.as_array();
  if (!list) return scalar_text(node);
  std::string joined;
  for (const toml::node& element : *list) {
    const auto text = scalar_text(element);
    if (!text) return std::nullopt;
    if (!joined.empty()) joined += key == "plugin_path" ? ':' : ',';
    joined += *text;
  }
  return joined;
}

Status bad_value(const std::string& path, const std::string& key) {
  return Status(
      Code::invalid_argument,
      fmt::format(
          "the config file '{}' gives '{}' a value that is neither text, number, truth value nor a list of these.",
          path, key));
}

Status read_providers(const std::string& path, const toml::node& node, ConfigFile& config) {
  const toml::table* providers = node.as_table();
  if (!providers) return bad_value(path, "provider");
  for (const auto& [name, section] : *providers) {
    const std::string provider(name.str());
    const toml::table* keys = section.as_table();
    if (!keys) return bad_value(path, fmt::format("provider.{}", provider));
    for (const auto& [key, value] : *keys) {
      const std::string word(key.str());
      const auto text = node_text(value, word);
      if (!text) return bad_value(path, fmt::format("provider.{}.{}", provider, word));
      config.provider_values[provider][word] = *text;
    }
  }
  return {};
}

}  // namespace

Result<ConfigFile> read_config_file(const std::string& path) {
  if (is_null_device(path)) return ConfigFile();
  TENON_ASSIGN_OR_RETURN(const CheckedFile file, open_checked(path));
  TENON_ASSIGN_OR_RETURN(const std::string text, read_all(file));
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Status(Code::invalid_argument,
                  fmt::format("the config file '{}' cannot be parsed: line {}, column {}: {}.", path,
                              error.source().begin.line, error.source().begin.column, error.description()));
  }
  ConfigFile config;
  for (const auto& [key, value] : parsed.table()) {
    const std::string word(key.str());
    if (word == "provider") {
      TENON_RETURN_IF_ERROR(read_providers(path, value, config));
      continue;
    }
    if (value.is_table()) {
      config.sections.push_back(word);
      continue;
    }
    const auto value_text = node_text(value, word);
    if (!value_text) return bad_value(path, word);
    config.values[word] = *value_text;
  }
  return config;
}

}  // namespace tenon::loader
