#include "loader/probe/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <thread>

#include "loader/trust/trust.h"

namespace tenon::loader {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr size_t most_answer_bytes = 1 << 20;
constexpr int64_t most_output_bytes = 1 << 16;
constexpr size_t most_printed = 200;

// Moves `descriptor` above the numbers that the helper's descriptors will have, so that no dup2 overwrites the source
// of another.
Descriptor raised(int descriptor) {
  const Descriptor low(descriptor);
  return Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, probe_answer_descriptor + 1));
}

Descriptor request_file(const std::string& request) {
  Descriptor file = raised(memfd_create("tenon-probe request", MFD_CLOEXEC));
  const bool written = write(file.get(), request.data(), request.size()) == static_cast<ssize_t>(request.size());
  return written && lseek(file.get(), 0, SEEK_SET) == 0 ? std::move(file) : Descriptor();
}

// A file of fixed size, so that a plug-in that prints without end fills no memory.
Descriptor output_file() {
  Descriptor file = raised(memfd_create("tenon-probe output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool sealed = ftruncate(file.get(), most_output_bytes) == 0 && fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW) == 0;
  return sealed ? std::move(file) : Descriptor();
}

class Spawning {
 public:
  Spawning() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
  ~Spawning() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }

  void give(const Descriptor& descriptor, int as) { posix_spawn_file_actions_adddup2(&actions_, descriptor.get(), as); }
  // Returns errno. Closes every descriptor above the answer's in the child.
  int start(const std::string& program, pid_t* pid) {
    posix_spawn_file_actions_addclosefrom_np(&actions_, probe_answer_descriptor + 1);
    char* words[] = {const_cast<char*>(program.c_str()), nullptr};
    return posix_spawn(pid, program.c_str(), &actions_, &attributes_, words, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Reads until the other side closes. Returns false if `deadline` passes first.
bool read_until_closed(int descriptor, Clock::time_point deadline, std::string* bytes) {
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    pollfd ready = {descriptor, POLLIN, 0};
    const int polled = poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (polled == 0 && Clock::now() >= deadline) return false;
    if (polled <= 0) continue;
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    const size_t room = most_answer_bytes - std::min(most_answer_bytes, bytes->size());
    bytes->append(buffer, std::min(room, static_cast<size_t>(count)));
  }
}

// Waits for the end of the process. Returns false if `deadline` passes first. A program that ignores SIGCHLD, or that
// waits for every child, takes the status away. The process then counts as exited with 0, and its answer decides.
bool wait_until_ended(pid_t pid, Clock::time_point deadline, ChildRun* run) {
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno == ECHILD) {
      run->end = ChildEnd::exited;
      return true;
    }
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  run->end = WIFSIGNALED(status) ? ChildEnd::died_of_signal : ChildEnd::exited;
  run->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

void kill_and_reap(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string last_line(int file) {
  const int64_t size = lseek(file, 0, SEEK_CUR);
  std::string text(static_cast<size_t>(std::clamp<int64_t>(size, 0, 4096)), '\0');
  const auto begin = static_cast<off_t>(std::max<int64_t>(0, size - static_cast<int64_t>(text.size())));
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(file, text.data(), text.size(), begin))));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::string line = text.substr(text.rfind('\n') + 1, most_printed);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return !std::isprint(static_cast<unsigned char>(c)); }, '?');
  return line;
}

}  // namespace

ChildRun run_child(const std::string& program, const std::string& request, Milliseconds time_limit) {
  ChildRun run;
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    run.number = errno;
    return run;
  }
  const Descriptor from_child(ends[0]);
  Descriptor to_parent = raised(ends[1]);
  const Descriptor input = request_file(request);
  const Descriptor output = output_file();
  if (to_parent.get() < 0 || input.get() < 0 || output.get() < 0) {
    run.number = errno;
    return run;
  }
  Spawning spawning;
  spawning.give(input, STDIN_FILENO);
  spawning.give(output, STDOUT_FILENO);
  spawning.give(output, STDERR_FILENO);
  spawning.give(to_parent, probe_answer_descriptor);
  pid_t pid = 0;
  run.number = spawning.start(program, &pid);
  if (run.number != 0) return run;
  to_parent = Descriptor();
  const auto deadline = time_limit.count() == 0 ? Clock::time_point::max() : Clock::now() + time_limit;
  const bool ended =
      read_until_closed(from_child.get(), deadline, &run.answer) && wait_until_ended(pid, deadline, &run);
  if (!ended) {
    run.end = ChildEnd::overran;
    kill_and_reap(pid);
  }
  run.printed = last_line(output.get());
  return run;
}

}  // namespace tenon::loader
