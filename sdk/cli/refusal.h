// Messages about wrong arguments, with the nearest valid one. CLI11's own messages list unexpected arguments in
// reverse, suggest nothing, and print a limit for a range without one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

// Returns the message for an error in the command line of `app`.
std::string refusal(const CLI::App& app, const CLI::Error& error);

// Prints that there is no `kind` named `word`, the nearest word of `known`, and `hint`. Returns the exit code.
int refuse_word(const char* kind, const std::string& word, const std::vector<std::string>& known,
                const std::string& hint);

// Checks a number. `rule` ends the sentence "must be a number".
CLI::Validator number_that(bool (*holds)(double), const char* rule);
CLI::Validator is_folder();
CLI::Validator is_not_empty();

}  // namespace tenon::cli
