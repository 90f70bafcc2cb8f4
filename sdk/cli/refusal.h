// What the tool says of arguments that it cannot take, each with the nearest one that it can. CLI11 names those that
// nobody expects in reverse, no nearest one, and of a range without an end its end.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

// The text for an error of parsing the command line of `app`.
std::string refusal(const CLI::App& app, const CLI::Error& error);

// Prints that there is no `kind` called `word`, the nearest of `known`, and `hint`. Returns the exit code.
int refuse_word(const char* kind, const std::string& word, const std::vector<std::string>& known,
                const std::string& hint);

// Checks of values: `rule` ends the sentence "must be a number".
CLI::Validator number_that(bool (*holds)(double), const char* rule);
CLI::Validator is_folder();

}  // namespace tenon::cli
