#include "loader/host/plugin_call.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace tenon::loader {

thread_local constinit const PluginCall* PluginCall::here = nullptr;

void PluginCall::tell(const char* what, int number) {
  const PluginCall* call = here;
  if (call == nullptr) return;
  char digits[12] = {};
  size_t at = sizeof digits - 1;
  for (int rest = number; rest > 0 && at > 0; rest /= 10) digits[--at] = static_cast<char>('0' + rest % 10);
  char line[512] = {};
  size_t length = 0;
  const char* space = number > 0 ? " " : "";
  for (const char* part : {"The provider '", call->provider_, "' ", what, space, static_cast<const char*>(digits + at),
                           " in ", call->function_, ".\n"}) {
    const size_t room = sizeof line - length, size = strlen(part);
    if (size > room) break;
    memcpy(line + length, part, size);
    length += size;
  }
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, length);
}

// The handler has been removed by now, so the signal has its usual effect.
void PluginCall::on_signal(int signal) {
  tell("died of signal", signal);
  raise(signal);
}

void name_ended_calls() {
  static char stack[1 << 16];  // for a stack that has overflowed
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = PluginCall::on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
    sigaction(signal, &action, nullptr);
  }
  std::atexit(PluginCall::on_exit);
}

}  // namespace tenon::loader
