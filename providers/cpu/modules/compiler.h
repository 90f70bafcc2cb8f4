// Compiler: turns C into shared objects, in helper processes that a deadline ends.
//
// No compiler runs inside the program: an LLVM error may end the process, a thread that hangs cannot be stopped, and
// two libraries may bring two LLVMs. The helpers are programs of the package, libexec/tenon/tenon-compile-clang, which
// links clang, and tenon-compile-cc, which runs a C compiler of the system. A helper is started when it is needed and
// stays until the Compiler ends; there are as many as texts were ever compiled at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

class CompileHelper;

// What compiles. `sentence` says why there is nothing, else it is empty.
struct Toolchain {
  std::string name;      // and version: "clang 14.0.6"
  std::string identity;  // changes when the compiler does
  std::string sentence;
  std::string remedy;
  std::string helper;  // path of the program
  std::string chosen;  // path of the compiler that the settings name
};

// How a compilation ended. Of EP_STATUS_OK `library` is a shared object; else `sentence` and `remedy` say why.
struct Compiled {
  ep_status status = EP_STATUS_OK;
  std::string sentence;
  std::string remedy;
  std::string output;  // what the compiler said
  std::string library;
};

class Compiler {
 public:
  // For code that may use vectors of so many bytes: 16, 32 or 64.
  Compiler(const ep_host* host, uint32_t vector_bytes);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  uint32_t vector_bytes() const { return vector_bytes_; }
  // Threads: any. The first call may start a helper.
  const Toolchain& toolchain();
  // Compiles `text`. Waits until a helper has answered, the setting compile_seconds has run out, or the host wants to
  // stop. Threads: any.
  Compiled compile(const std::string& text);

 private:
  // An idle helper, or a fresh one. NULL: `*why_not` says why.
  std::unique_ptr<CompileHelper> take(bool* fresh, std::string* why_not);
  void give_back(std::unique_ptr<CompileHelper> helper);
  void find_toolchain();

  const ep_host* host_;
  const uint32_t vector_bytes_;
  uint32_t seconds_ = 30;  // of a compilation
  std::once_flag found_;
  Toolchain toolchain_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CompileHelper>> idle_;
};

}  // namespace tenon::provider::cpu
