#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {

// The conformance kit is a separate program, so that its child processes load the provider and no library of Tenon.
int conform(const ConformOptions& options) {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string kit = self.parent_path() / "tenon-conform";
  std::vector<char*> words = {const_cast<char*>(kit.c_str())};
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(kit.c_str(), words.data());
  throw Error(Code::not_found, fmt::format("The conformance kit '{}' cannot be run: {}.", kit, std::strerror(errno)),
              "Install Tenon whole, or build the target tenon_conform.");
}

}  // namespace tenon::cli
