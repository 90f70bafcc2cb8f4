#include "core/device/process.h"

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/trace.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"

namespace tenon::process {
namespace {

constexpr size_t kEndings = 2;

struct Endings {
  std::mutex mutex;
  std::array<std::vector<void (*)()>, kEndings> functions;
};

Endings& endings() {
  static auto* all = new Endings;
  return *all;
}

void run(Ending step) {
  std::vector<void (*)()> functions;
  {
    std::lock_guard lock(endings().mutex);
    functions.swap(endings().functions[static_cast<size_t>(step)]);
  }
  for (auto function : functions) function();
}

void at_exit() {
  if (forked()) return;
  ending.store(true);
  run(Ending::drain);
  run(Ending::join);
  program_ended.store(true, std::memory_order_release);
  if (Status status = trace_end(); !status.ok()) {
    loader::log(loader::LogTopic::vm, loader::LogLevel::warning, status.message());
  }
}

std::atomic<uint32_t> callbacks{0};  // CallbackScopes that are open now, on any thread
thread_local constinit Callback callback_here = Callback::none;

void in_child() { attention.fetch_or(kForked); }

void register_hooks() {
  std::atexit(at_exit);
  pthread_atfork(nullptr, nullptr, in_child);
  const loader::Settings& settings = loader::settings();
  if (!settings.trace.empty()) trace_begin(settings.trace);
}

}  // namespace

Status why_unusable() {
  if (forked()) [[unlikely]] {
    return Status(Code::invalid_argument,
                  "This process is a fork of one that uses Tenon; a forked child may only exec.",
                  "Start workers before the first use of Tenon, or start them with exec (spawn) instead of fork.");
  }
  if (callback_here == Callback::deleter) [[unlikely]] {
    return Status(
        Code::invalid_argument,
        "A deleter of borrowed memory may not submit work to Tenon or wait for it where it runs on a thread of "
        "Tenon: that thread is the one that carries out the work.",
        "Free the memory in the deleter, and call Tenon elsewhere.");
  }
  if (callback_here == Callback::access) [[unlikely]] {
    return Status(
        Code::invalid_argument,
        "A function that was given to Tensor::access may not submit work to Tenon or wait for it: it runs inside "
        "an instruction that later ones wait for.",
        "Work on the elements the function is given, and call Tenon after Tensor::access.");
  }
  if (ending.load(std::memory_order_relaxed)) [[unlikely]] {
    return Status(Code::cancelled, "The program is ending; Tenon takes no further work.");
  }
  return Status();
}

CallbackScope::CallbackScope(Callback callback) : previous_(std::exchange(callback_here, callback)) {
  if (callbacks.fetch_add(1) == 0) attention.fetch_or(kCallback);
}

CallbackScope::~CallbackScope() {
  callback_here = previous_;
  if (callbacks.fetch_sub(1) == 1) attention.fetch_and(~uint32_t{kCallback});
}

void at_end(Ending step, void (*function)()) {
  [[maybe_unused]] static const bool registered = (register_hooks(), true);
  std::lock_guard lock(endings().mutex);
  endings().functions[static_cast<size_t>(step)].push_back(function);
}

}  // namespace tenon::process
