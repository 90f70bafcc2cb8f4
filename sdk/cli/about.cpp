#include <cstdio>

#include "core/tensor/version.h"
#include "loader/loader.h"
#include "sdk/cli/commands.h"

#define TENON_TEXT_INNER(x) #x
#define TENON_TEXT(x) TENON_TEXT_INNER(x)

namespace tenon::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " TENON_TEXT(__clang_major__) "." TENON_TEXT(__clang_minor__);
#else
  return "g++ " TENON_TEXT(__GNUC__) "." TENON_TEXT(__GNUC_MINOR__);
#endif
}

}  // namespace

std::string version_text() {
  std::string text = "tenon " + std::string(version()) + " (commit " TENON_COMMIT ")\n";
  text += "  provider ABI " TENON_TEXT(EP_ABI_MAJOR) "." TENON_TEXT(EP_ABI_MINOR) ", built by " + compiler() + "\n";
  text += "  libraries: " TENON_LIBRARIES "\n";
  for (const loader::Candidate& candidate : loader::explain(loader::Stage::note)) {
    text += "  provider " + candidate.provider + " " + candidate.version + ": " +
            (candidate.path.empty() ? "in the program" : candidate.path);
    if (!candidate.toolchain.empty()) text += " (" + candidate.toolchain + ")";
    if (candidate.code != Code::ok) text += ", refused";
    text += "\n";
  }
  return text;
}

std::string help_topics() {
  return "Topics of `tenon help TOPIC`:\n"
         "  env      every setting: its TENON_* variable, its key in tenon.toml, what it may be\n"
         "  COMMAND  what a command takes; `tenon --help-all` tells of all of them\n";
}

}  // namespace tenon::cli
