// Shell completion, made from the command line itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

// The shells for which there are scripts.
const std::vector<std::string>& completion_shells();
// A script that completes the commands and options of `app` in `shell`: `source <(tenon completion bash)`.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace tenon::cli
