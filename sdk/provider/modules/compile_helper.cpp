#include "sdk/provider/modules/compile_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace tenon::provider {
namespace {

constexpr int look_every_ms = 5;  // interval for checking if the host wants to stop

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
  ~Spawning() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  // Returns errno. The child inherits `socket`, and its output is discarded.
  int start(const std::string& program, const std::string& argument, int socket, pid_t* process) {
    posix_spawn_file_actions_adddup2(&actions_, socket, helper::socket_descriptor);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null", O_RDWR, 0);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, helper::socket_descriptor + 1);
    char* words[] = {const_cast<char*>(program.c_str()),
                     argument.empty() ? nullptr : const_cast<char*>(argument.c_str()), nullptr};
    return posix_spawn(process, program.c_str(), &actions_, &attributes_, words, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Checks without reaping the process, so that its number is not reused.
bool has_ended(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == process;
}

}  // namespace

struct CompileHelper::Wait {
  Clock::time_point deadline;
  bool (*stops)(const void* context);
  const void* context;

  // Waits until the socket is ready for `events`, and then returns `answered`.
  End until_ready(int socket, short events) const {
    while (true) {
      pollfd ready = {socket, events, 0};
      const int polled = poll(&ready, 1, look_every_ms);
      if (polled > 0) return End::answered;
      if (polled < 0 && errno != EINTR) return End::broke;
      if (stops(context)) return End::stopped;
      if (Clock::now() >= deadline) return End::overran;
    }
  }
};

std::unique_ptr<CompileHelper> CompileHelper::start(const std::string& program, const std::string& chosen,
                                                    std::string* why_not) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    *why_not = std::strerror(errno);
    return nullptr;
  }
  // The helper's end gets a number above its final descriptor, so that dup2 makes a copy without the close-on-exec
  // flag.
  const int raised = fcntl(ends[1], F_DUPFD_CLOEXEC, helper::socket_descriptor + 1);
  close(ends[1]);
  pid_t process = 0;
  const int error = raised < 0 ? errno : Spawning().start(program, chosen, raised, &process);
  if (raised >= 0) close(raised);
  if (error != 0) {
    close(ends[0]);
    *why_not = std::strerror(error);
    return nullptr;
  }
  return std::unique_ptr<CompileHelper>(new CompileHelper(process, ends[0]));
}

CompileHelper::CompileHelper(pid_t process, int socket) : process_(process), owner_(getpid()), socket_(socket) {}

bool CompileHelper::is_foreign() const { return getpid() != owner_; }

CompileHelper::~CompileHelper() {
  close(socket_);
  if (is_foreign()) return;
  // On SIGTERM a helper deletes the files that its compiler has written.
  kill(-process_, SIGTERM);
  for (int look = 0; look < 50 && !has_ended(process_); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

CompileHelper::End CompileHelper::send(const char* bytes, size_t size, const Wait& wait) const {
  while (size > 0) {
    const ssize_t count = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes += count;
      size -= static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return End::broke;
    if (const End end = wait.until_ready(socket_, POLLOUT); end != End::answered) return end;
  }
  return End::answered;
}

CompileHelper::End CompileHelper::receive(char* bytes, size_t size, const Wait& wait) const {
  while (size > 0) {
    if (const End end = wait.until_ready(socket_, POLLIN); end != End::answered) return end;
    const ssize_t count = recv(socket_, bytes, size, MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (count <= 0) return End::broke;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return End::answered;
}

CompileHelper::End CompileHelper::ask(const helper::Question& question, const std::string& text,
                                      Clock::time_point deadline, bool (*stops)(const void* context),
                                      const void* context) {
  const Wait wait{deadline, stops, context};
  const auto send_head = reinterpret_cast<const char*>(&question);
  const auto read_head = reinterpret_cast<char*>(&answer_);
  End end = send(send_head, sizeof question, wait);
  if (end == End::answered) end = send(text.data(), text.size(), wait);
  if (end == End::answered) end = receive(read_head, sizeof answer_, wait);
  if (end != End::answered) return end;
  if (answer_.output_bytes > helper::most_output_bytes || answer_.binary_bytes > helper::most_binary_bytes) {
    return End::broke;
  }
  output_.resize(answer_.output_bytes);
  binary_.resize(answer_.binary_bytes);
  end = receive(output_.data(), output_.size(), wait);
  return end == End::answered ? receive(binary_.data(), binary_.size(), wait) : end;
}

}  // namespace tenon::provider
