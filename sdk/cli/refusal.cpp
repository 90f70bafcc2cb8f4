#include "sdk/cli/refusal.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::cli {
namespace {

// Ends a sentence with the nearest known word, if one is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "." : fmt::format("; did you mean {}?", nearest);
}

// Rewrites CLI11's text "Could not convert: --seed = x".
std::string misfit(const std::string& said) {
  const size_t colon = said.find(": "), equals = said.find(" = ");
  if (colon == std::string::npos || equals == std::string::npos) return fmt::format("{}.", said);
  return fmt::format("the value '{}' of {} is not an allowed number.", said.substr(equals + 3),
                     said.substr(colon + 2, equals - colon - 2));
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(fmt::format("--{}", name));
  }
  return names;
}

// Returns the sentence about arguments that `command` does not expect. It names the first option, or else the first
// argument.
std::string unexpected(const CLI::App& command, const std::vector<std::string>& extras) {
  for (const std::string& word : extras) {
    if (!word.starts_with('-') || word == "-") continue;
    return fmt::format("the option '{}' is unknown{}", word,
                       did_you_mean(word.substr(0, word.find('=')), option_names(command)));
  }
  return fmt::format("the argument '{}' is one too many.", extras.front());
}

}  // namespace

std::string refusal(const CLI::App& app, const CLI::Error& error) {
  const auto given = app.get_subcommands();
  const CLI::App& command = given.empty() ? app : *given.front();
  const std::string name = given.empty() ? "tenon" : fmt::format("tenon {}", command.get_name());
  const std::string help = given.empty() ? "tenon --help" : fmt::format("tenon help {}", command.get_name());
  const std::vector<std::string> extras = app.remaining(true);
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  std::string sentence = fmt::format("{}.", error.what());
  if (kind == CLI::ExitCodes::ConversionError) sentence = misfit(error.what());
  if (kind == CLI::ExitCodes::ExtrasError && !extras.empty()) sentence = unexpected(command, extras);
  return fmt::format("{}: {}\n  `{}` says what it takes.\n", name, sentence, help);
}

int refuse_word(const char* kind, const std::string& word, const std::vector<std::string>& known,
                const std::string& hint) {
  std::fprintf(stderr, "tenon: there is no %s '%s'%s\n%s", kind, word.c_str(), did_you_mean(word, known).c_str(),
               hint.c_str());
  return 2;
}

CLI::Validator number_that(bool (*holds)(double), const char* rule) {
  return CLI::Validator(
      [=](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == '\0' && holds(value);
        return fits ? "" : fmt::format("must be a number {}, but is {}", rule, text);
      },
      "");
}

CLI::Validator is_not_empty() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, "");
}

CLI::Validator is_folder() {
  return CLI::Validator(
      [](const std::string& text) {
        std::error_code ignored;
        return std::filesystem::is_directory(text, ignored) ? "" : fmt::format("there is no folder '{}'", text);
      },
      "");
}

}  // namespace tenon::cli
