// A compile helper: a process that compiles texts for the plug-in that started it (protocol.h).
//
// The first argument, if any, names the compiler to use. The helper limits its own memory, the size of its
// files, and the time of each question, after which SIGALRM ends it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "ep_api/ep_api.h"
#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

[[maybe_unused]] constexpr rlim_t most_memory = rlim_t{4} << 30;
constexpr rlim_t largest_file = rlim_t{256} << 20;
constexpr unsigned longest_alarm = 3600;
constexpr int niceness = 10;  // so that compiling does not slow running programs

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
  head.binary_bytes = outcome.result == Result::done ? outcome.binary.size() : 0;
  return write_all(&head, sizeof head) && write_all(outcome.output.data(), head.output_bytes) &&
         write_all(outcome.binary.data(), head.binary_bytes);
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

int run(const std::string& chosen) {
  setpriority(PRIO_PROCESS, 0, niceness);  // for this process and the compilers that it starts
  signal(SIGXFSZ, SIG_IGN);                // a write beyond the limit fails instead of ending the process
  lower(RLIMIT_CORE, 0);
  lower(RLIMIT_FSIZE, largest_file);
#if EP_SANITIZER_OF_THIS_BUILD == EP_SANITIZER_NONE && !defined(TENON_HELPER_OPENS_A_DRIVER)
  lower(RLIMIT_AS, most_memory);  // sanitizers and drivers reserve much more address space
#endif
  return serve(chosen);
}

}  // namespace

}  // namespace tenon::provider::helper

int main(int count, char** words) {
  using namespace tenon::provider::helper;
  return run(count > 1 ? words[1] : "");
}
