#include "providers/cpu/modules/c_compiler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

namespace tenon::provider::cpu {
namespace {

constexpr const char* setting_remedy =
    "Set compiler of [provider.cpu] to the absolute path of a C compiler, to 'cc' or 'clang', or leave it out.";

// Returns a text that changes when tenon-compile-cc would use another compiler: the state of `chosen`, or of the
// compilers in the folders of PATH.
std::string compilers_of(const std::string& chosen) {
  if (!chosen.empty()) return state_of(chosen);
  const char* path = std::getenv("PATH");
  std::string all = path != nullptr ? path : "/usr/bin:/bin";
  std::string rest = all;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    for (const char* name : {"cc", "gcc", "clang"}) {
      all += fmt::format("\n{}", state_of(fmt::format("{}/{}", rest.substr(0, end), name)));
    }
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return all;
}

}  // namespace

void CCompiler::find(const std::string& choice, Toolchain* found) {
  if (!choice.empty() && choice != "cc" && choice != "clang" && choice[0] != '/') {
    found->sentence = fmt::format("The setting compiler of provider cpu is '{}'.", choice);
    found->remedy = setting_remedy;
    return;
  }
#if defined(TENON_CLANG_VERSION)
  if (choice.empty() || choice == "clang") {
    found->helper = find_helper("tenon-compile-clang");
    if (!found->helper.empty()) {
      found->name = "clang " TENON_CLANG_VERSION;
      found->identity = fmt::format("{}, {}", state_of(found->helper), state_of(TENON_CLANG_LIBRARY));
      return;
    }
  }
#endif
  if (choice != "clang") found->helper = find_helper("tenon-compile-cc");
  if (found->helper.empty()) {
    found->sentence = fmt::format("The helper program {} is not installed with this provider.",
                                  choice == "clang" ? "tenon-compile-clang" : "tenon-compile-cc");
    return;
  }
  if (choice.size() > 2 && choice[0] == '/') found->chosen = choice;
  identify(found, "Install gcc or clang.", compilers_of(found->chosen));
}

}  // namespace tenon::provider::cpu
