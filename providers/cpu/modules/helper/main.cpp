// A compile helper: a process that turns C into shared objects for the plug-in that started it (protocol.h).
//
// The first argument, if there is one, is the path of the compiler to use. The helper bounds itself: memory, size of
// files, and the seconds of each question, after which SIGALRM ends it even if nobody kills it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "providers/cpu/modules/helper/engine.h"

namespace tenon::provider::cpu::helper {
namespace {

constexpr rlim_t most_memory = rlim_t{4} << 30;
constexpr rlim_t largest_file = rlim_t{256} << 20;
constexpr unsigned longest_alarm = 3600;

bool read_all(void* to, size_t size) {
  auto* next = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t count = read(socket_descriptor, next, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool write_all(const void* from, size_t size) {
  const auto* next = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t count = send(socket_descriptor, next, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void lower(int resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  limit.rlim_max = std::min(limit.rlim_max, most);
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

bool answer(const Outcome& outcome) {
  Answer head;
  head.result = outcome.result;
  head.output_bytes = std::min<uint64_t>(outcome.output.size(), most_output_bytes);
  head.library_bytes = outcome.result == Result::done ? outcome.library.size() : 0;
  return write_all(&head, sizeof head) && write_all(outcome.output.data(), head.output_bytes) &&
         write_all(outcome.library.data(), head.library_bytes);
}

int serve(const std::string& chosen) {
  const Outcome found = identify(chosen);
  Question question;
  while (read_all(&question, sizeof question)) {
    std::string text(question.text_bytes, '\0');
    if (!read_all(text.data(), text.size())) break;
    alarm(std::clamp(question.seconds, 1U, longest_alarm));
    const bool compiles = question.ask == Ask::compile && found.result == Result::done;
    if (!answer(compiles ? compile(text, question) : found)) break;
    alarm(0);
  }
  return 0;
}

}  // namespace

std::vector<std::string> code_options(uint32_t vector_bytes) {
  std::vector<std::string> options = {"-std=gnu11",
                                      "-O2",
                                      "-fPIC",
                                      "-ffp-contract=off",
                                      "-fno-fast-math",
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      "-fwrapv",
                                      "-fno-strict-aliasing",
                                      "-fno-ident",
                                      "-fno-asynchronous-unwind-tables",
                                      "-fno-stack-protector",
                                      "-Wno-psabi"};
#if defined(__x86_64__)
  // The levels of the x86-64 psABI are what Highway's targets need. Compilers use half of the widest registers unless
  // they are told otherwise.
  if (vector_bytes == 32) options.insert(options.end(), {"-march=x86-64-v3"});
  if (vector_bytes == 64) options.insert(options.end(), {"-march=x86-64-v4", "-mprefer-vector-width=512"});
#else
  static_cast<void>(vector_bytes);
#endif
  return options;
}

namespace {

int run(const std::string& chosen) {
  signal(SIGXFSZ, SIG_IGN);  // a write that finds no room fails, and ends nobody
  lower(RLIMIT_CORE, 0);
  lower(RLIMIT_FSIZE, largest_file);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  lower(RLIMIT_AS, most_memory);
#endif
  return serve(chosen);
}

}  // namespace

}  // namespace tenon::provider::cpu::helper

int main(int count, char** words) {
  using namespace tenon::provider::cpu::helper;
  return run(count > 1 ? words[1] : "");
}
