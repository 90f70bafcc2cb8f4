#include <cstdio>

#include "core/tensor/version.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#else
  return fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
}

}  // namespace

std::string version_text() {
  std::string text = fmt::format("tenon {} (commit {})\n", version(), TENON_COMMIT);
  text += fmt::format("  provider ABI {}.{}, built by {}\n", EP_ABI_MAJOR, EP_ABI_MINOR, compiler());
  text += "  libraries: " TENON_LIBRARIES "\n";
  for (const loader::Candidate& candidate : loader::explain(loader::Stage::note)) {
    text += fmt::format("  provider {} {}: {}", candidate.provider, candidate.version,
                        candidate.path.empty() ? "in the program" : candidate.path);
    if (!candidate.toolchain.empty()) text += fmt::format(" ({})", candidate.toolchain);
    if (candidate.code != Code::ok) text += ", refused";
    text += "\n";
  }
  return text;
}

std::string help_topics() {
  return "Topics of `tenon help TOPIC`:\n"
         "  env      every setting: its TENON_* variable, its key in tenon.toml, what it may be\n"
         "  COMMAND  what a command takes; `tenon --help-all` describes all of them\n";
}

}  // namespace tenon::cli
