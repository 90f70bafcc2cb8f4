// Compiler: turns texts into binaries, in helper processes that a deadline ends.
//
// No compiler runs inside the program: an error of it may end the process, a thread that hangs cannot be stopped, and
// two libraries may bring two LLVMs. The helpers are programs of the package, libexec/tenon/tenon-compile-<name>. A
// helper is started when it is needed and stays until the Compiler ends; there are as many as texts were ever compiled
// at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider {

class CompileHelper;

// What compiles. `sentence` says why there is nothing, else it is empty.
struct Toolchain {
  std::string name;      // and version: "clang 14.0.6"
  std::string identity;  // changes when the compiler does
  std::string sentence;
  std::string remedy;
  std::string helper;  // path of the program
  std::string chosen;  // the argument of the program
};

// How a compilation ended. Of EP_STATUS_OK `binary` is what was made; else `sentence` and `remedy` say why.
struct Compiled {
  ep_status status = EP_STATUS_OK;
  std::string sentence;
  std::string remedy;
  std::string output;  // what the compiler said
  std::string binary;
};

class Compiler {
 public:
  virtual ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // What the binaries are for: helper::Question::target.
  uint32_t target() const { return target_; }
  // Threads: any. The first call may start a helper.
  const Toolchain& toolchain();
  // Compiles `text`. Waits until a helper has answered, the setting compile_seconds has run out, or the host wants to
  // stop. Threads: any.
  Compiled compile(const std::string& text);
  // Everything that decides what compile(source) makes: the key of what is kept.
  std::string everything_of(const std::string& source);

 protected:
  // `provider` names it in messages, and lives as long as the compiler.
  Compiler(const ep_host* host, const char* provider, uint32_t target);

  // Fills `found` with a helper, or with a sentence that says why there is none. `choice`: the setting `compiler`,
  // which is not "none". Called once.
  virtual void find(const std::string& choice, Toolchain* found) = 0;

  std::string setting(std::string_view key) const;
  // The path of the helper `name` of this package; empty: it is not installed, or others may write it.
  std::string find_helper(const char* name) const;
  // Asks the helper of `found` for name and identity. `remedy`: where it has no compiler. `depends` says all that
  // decides the answer beside the helper; the host then keeps it, and the next process asks nobody. Empty: it is not
  // kept.
  void identify(Toolchain* found, const char* remedy, const std::string& depends = {});

 private:
  // An idle helper, or a fresh one. NULL: `*why_not` says why.
  std::unique_ptr<CompileHelper> take(bool* fresh, std::string* why_not);
  void give_back(std::unique_ptr<CompileHelper> helper);
  void find_toolchain();

  const ep_host* const host_;
  const char* const provider_;
  const uint32_t target_;
  uint32_t seconds_ = 30;  // of a compilation
  std::once_flag found_;
  Toolchain toolchain_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CompileHelper>> idle_;
};

// Of a file: changes when the file is replaced.
std::string state_of(const std::string& path);

}  // namespace tenon::provider
