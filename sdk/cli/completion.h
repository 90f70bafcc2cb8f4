// Shell completion, generated from the definition of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

// The supported shells.
const std::vector<std::string>& completion_shells();
// Returns a script that completes the commands and options of `app` in `shell`. Use: `source <(tenon completion bash)`.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace tenon::cli
