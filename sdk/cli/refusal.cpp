#include "sdk/cli/refusal.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "loader/settings/nearest.h"

namespace tenon::cli {
namespace {

// Ends a sentence with the nearest word, where there is one.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = loader::nearest_word(word, known);
  return nearest.empty() ? "." : "; did you mean " + nearest + "?";
}

// CLI11 says "Could not convert: --seed = x".
std::string misfit(const std::string& said) {
  const size_t colon = said.find(": "), equals = said.find(" = ");
  if (colon == std::string::npos || equals == std::string::npos) return said + ".";
  return "the value '" + said.substr(equals + 3) + "' of " + said.substr(colon + 2, equals - colon - 2) +
         " is not a number that it may be.";
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Of arguments that `command` does not expect: the first option, else the first of them.
std::string unexpected(const CLI::App& command, const std::vector<std::string>& extras) {
  for (const std::string& word : extras) {
    if (!word.starts_with('-') || word == "-") continue;
    return "the option '" + word + "' is unknown" + did_you_mean(word.substr(0, word.find('=')), option_names(command));
  }
  return "the argument '" + extras.front() + "' is one too many.";
}

}  // namespace

std::string refusal(const CLI::App& app, const CLI::Error& error) {
  const auto given = app.get_subcommands();
  const CLI::App& command = given.empty() ? app : *given.front();
  const std::string name = given.empty() ? "tenon" : "tenon " + command.get_name();
  const std::string help = given.empty() ? "tenon --help" : "tenon help " + command.get_name();
  const std::vector<std::string> extras = app.remaining(true);
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  std::string sentence = std::string(error.what()) + ".";
  if (kind == CLI::ExitCodes::ConversionError) sentence = misfit(error.what());
  if (kind == CLI::ExitCodes::ExtrasError && !extras.empty()) sentence = unexpected(command, extras);
  return name + ": " + sentence + "\n  `" + help + "` says what it takes.\n";
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
        return fits ? "" : "must be a number " + std::string(rule) + ", but is " + text;
      },
      "");
}

CLI::Validator is_folder() {
  return CLI::Validator(
      [](const std::string& text) {
        std::error_code ignored;
        return std::filesystem::is_directory(text, ignored) ? "" : "there is no folder '" + text + "'";
      },
      "");
}

}  // namespace tenon::cli
