// Compiler: compiles texts to binaries in helper processes, which are ended at a deadline.
//
// No compiler runs inside the program: its errors may end the process, a thread that hangs cannot be stopped, and two
// libraries may load two versions of LLVM. The helpers are programs of the package, libexec/tenon/tenon-compile-<name>.
// A helper is started when it is needed and runs until the Compiler is destroyed. There are as many helpers as texts
// were compiled at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider {

class CompileHelper;

// The compiler found. If there is none, `sentence` says why; else it is empty.
struct Toolchain {
  std::string name;      // with version: "clang 14.0.6"
  std::string identity;  // changes when the compiler does
  std::string sentence;
  std::string remedy;
  std::string helper;  // path of the program
  std::string chosen;  // the argument of the program
};

// The result of a compilation: `binary` on EP_STATUS_OK, else `sentence` and `remedy`.
struct CompileResult {
  ep_status status = EP_STATUS_OK;
  std::string sentence;
  std::string remedy;
  std::string output;  // the compiler's output
  std::string binary;
};

class Compiler {
 public:
  virtual ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // The target of the binaries: helper::Question::target.
  uint32_t target() const { return target_; }
  // Threads: any. The first call may start a helper.
  const Toolchain& toolchain();
  // Compiles `text`. Waits until a helper has answered, the time of the setting compile_seconds is over, or the host
  // wants to stop. Threads: any.
  CompileResult compile(const std::string& text);
  // The cache key for the binary of `source`: a text that names everything on which the binary depends.
  std::string everything_of(const std::string& source);

 protected:
  // `provider` is the name for messages and lives as long as the compiler.
  Compiler(const ep_host* host, const char* provider, uint32_t target);

  // Fills `found` with a helper, or with a sentence that says why there is none. `choice` is the setting `compiler` and
  // not "none". Called once.
  virtual void find(const std::string& choice, Toolchain* found) = 0;

  std::string setting(std::string_view key) const;
  // The path of the helper `name` of this package. Empty if it is not installed or other users may write it.
  std::string find_helper(const char* name) const;
  // Asks the helper of `found` for name and identity. `remedy` is for the error if it has no compiler. `depends` names
  // everything besides the helper on which the answer depends: the host stores the answer under it, so that later
  // processes need not ask. If it is empty, the answer is not stored.
  void identify(Toolchain* found, const char* remedy, const std::string& depends = {});

 private:
  // Returns an idle helper or starts one (`*fresh`). Returns NULL on failure, with the reason in `*why_not`.
  std::unique_ptr<CompileHelper> take(bool* fresh, std::string* why_not);
  void give_back(std::unique_ptr<CompileHelper> helper);
  void find_toolchain();

  const ep_host* const host_;
  const char* const provider_;
  const uint32_t target_;
  uint32_t seconds_ = 30;  // limit for one compilation
  std::once_flag found_;
  Toolchain toolchain_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CompileHelper>> idle_;
};

// A text that changes when the file is replaced.
std::string state_of(const std::string& path);

}  // namespace tenon::provider
