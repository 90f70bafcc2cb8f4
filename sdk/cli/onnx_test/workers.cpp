#include "sdk/cli/onnx_test/workers.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

bool write_all(int fd, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

// Reads a line from `fd` into `line`; `pending` holds bytes of later lines. Returns false at the end of the stream.
bool read_line(int fd, std::string* pending, std::string* line) {
  while (true) {
    const size_t end = pending->find('\n');
    if (end != std::string::npos) {
      *line = pending->substr(0, end);
      pending->erase(0, end + 1);
      return true;
    }
    char buffer[4096];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    pending->append(buffer, static_cast<size_t>(n));
  }
}

// The loop of a child: reads the number of a case and writes the result, until the parent sends no more.
[[noreturn]] void serve(int fd, const std::function<CaseResult(size_t)>& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::string pending, line;
  while (read_line(fd, &pending, &line)) {
    const CaseResult result = run(std::stoul(line));
    std::string answer = fmt::format("{} {:.3f}", static_cast<int>(result.verdict), result.milliseconds);
    for (uint64_t launches : result.launches) answer += fmt::format(" {}", launches);
    if (!write_all(fd, fmt::format("{} {}\n", answer, result.sentence))) break;
  }
  _exit(0);
}

struct Child {
  pid_t pid = -1;
  int fd = -1;
  std::optional<size_t> running;
  Clock::time_point deadline;
  std::string pending;
};

class Pool {
 public:
  Pool(size_t count, const WorkerOptions& options, const std::function<CaseResult(size_t)>& run,
       const std::function<void(size_t, const CaseResult&)>& done)
      : count_(count), options_(options), run_(run), done_(done), children_(std::max<uint32_t>(1, options.jobs)) {}
  ~Pool() {
    for (Child& child : children_) stop(&child);
  }

  void run() {
    while (next_ < count_ || any_running()) {
      for (Child& child : children_) {
        if (!child.running && next_ < count_) give(&child);
      }
      wait();
    }
  }

 private:
  bool any_running() const {
    for (const Child& child : children_) {
      if (child.running) return true;
    }
    return false;
  }

  void start(Child* child) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw Error(Code::internal,
                  fmt::format("A pair of sockets for a child process cannot be made: {}.", std::strerror(errno)));
    }
    std::fflush(nullptr);
    child->pid = fork();
    if (child->pid < 0)
      throw Error(Code::internal, fmt::format("A child process cannot be started: {}.", std::strerror(errno)));
    if (child->pid == 0) {
      for (const Child& other : children_) {
        if (other.fd >= 0) close(other.fd);
      }
      close(pair[0]);
      serve(pair[1], run_);
    }
    close(pair[1]);
    child->fd = pair[0];
    child->pending.clear();
  }

  // Ends the child and returns its wait status.
  int stop(Child* child) {
    int status = 0;
    if (child->pid > 0) {
      close(child->fd);
      kill(child->pid, SIGKILL);
      while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
      }
    }
    *child = Child();
    return status;
  }

  void give(Child* child) {
    if (child->pid < 0) start(child);
    child->running = next_++;
    child->deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.time_limit));
    write_all(child->fd, fmt::format("{}\n", *child->running));  // a dead child is noticed when its answer is read
  }

  void wait() {
    std::vector<pollfd> polls;
    std::vector<Child*> waiting;
    Clock::time_point first = Clock::time_point::max();
    for (Child& child : children_) {
      if (!child.running) continue;
      polls.push_back({child.fd, POLLIN, 0});
      waiting.push_back(&child);
      first = std::min(first, child.deadline);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now()).count();
    poll(polls.data(), polls.size(), static_cast<int>(std::max<int64_t>(0, left)) + 1);
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (polls[i].revents != 0) {
        answer(waiting[i]);
      } else if (Clock::now() >= waiting[i]->deadline) {
        overrun(waiting[i]);
      }
    }
  }

  void answer(Child* child) {
    const size_t index = *child->running;
    std::string line;
    CaseResult result;
    int verdict = 0, used = 0;
    unsigned long long launches[4] = {};
    if (!read_line(child->fd, &child->pending, &line) ||
        std::sscanf(line.c_str(), "%d %lf %llu %llu %llu %llu%n", &verdict, &result.milliseconds, &launches[0],
                    &launches[1], &launches[2], &launches[3], &used) != 6 ||
        line[static_cast<size_t>(used)] != ' ') {
      return crashed(child, index);
    }
    ++used;
    std::copy(std::begin(launches), std::end(launches), result.launches.begin());
    result.verdict = static_cast<Verdict>(verdict);
    result.sentence = line.substr(static_cast<size_t>(used));
    child->running.reset();
    done_(index, result);
  }

  void crashed(Child* child, size_t index) {
    int status = 0;
    waitpid(child->pid, &status, 0);
    close(child->fd);
    *child = Child();
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                : fmt::format("exit code {}", WEXITSTATUS(status));
    done_(index, {Verdict::failed, fmt::format("its process crashed ({})", how), 0, {}});
  }

  void overrun(Child* child) {
    const size_t index = *child->running;
    stop(child);
    done_(index, {Verdict::failed,
                  fmt::format("it did not end within {:g} s", options_.time_limit),
                  1e3 * options_.time_limit,
                  {}});
  }

  size_t count_, next_ = 0;
  const WorkerOptions& options_;
  const std::function<CaseResult(size_t)>& run_;
  const std::function<void(size_t, const CaseResult&)>& done_;
  std::vector<Child> children_;
};

}  // namespace

void run_in_children(size_t count, const WorkerOptions& options, const std::function<CaseResult(size_t)>& run,
                     const std::function<void(size_t, const CaseResult&)>& done) {
  Pool(count, options, run, done).run();
}

}  // namespace tenon::cli
