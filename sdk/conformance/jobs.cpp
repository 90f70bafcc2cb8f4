#include "sdk/conformance/jobs.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "sdk/conformance/pipe.h"

namespace tenon::conformance {
namespace {

constexpr size_t parts_per_job = 4;  // so that a job that finishes early finds more work

// Numbers of tests that one process runs, in order.
using Part = std::vector<size_t>;

// Divides tests[from..to), which share a process, into at most `most` parts.
void deal_out(const std::vector<Test>& tests, size_t from, size_t to, size_t most, std::vector<Part>* parts) {
  std::vector<size_t> numbers, closing;
  for (size_t i = from; i < to; ++i) (tests[i].closes_process ? closing : numbers).push_back(i);
  const size_t size = std::max<size_t>(1, (numbers.size() + most - 1) / most);
  for (size_t at = 0; at < std::max<size_t>(numbers.size(), 1); at += size) {
    Part part(numbers.begin() + static_cast<ptrdiff_t>(at),
              numbers.begin() + static_cast<ptrdiff_t>(std::min(at + size, numbers.size())));
    part.insert(part.end(), closing.begin(), closing.end());
    parts->push_back(std::move(part));
  }
}

std::vector<Part> parts_of(const std::vector<Test>& tests, size_t jobs) {
  std::vector<Part> parts;
  for (size_t i = 0; i < tests.size();) {
    size_t end = i + 1;
    if (tests[i].shares_process) {
      while (end < tests.size() && tests[end].shares_process) ++end;
      deal_out(tests, i, end, jobs * parts_per_job, &parts);
    } else {
      parts.push_back({i});
    }
    i = end;
  }
  return parts;
}

struct Header {
  uint64_t number;  // the number of the test
  int32_t outcome, not_claimed;
  uint64_t rule, sentence, output;  // bytes of each, which follow
  double milliseconds;
};

void send(int pipe, size_t number, const Finding& finding) {
  const Header header = {number,
                         static_cast<int32_t>(finding.outcome),
                         finding.not_claimed,
                         finding.rule.size(),
                         finding.sentence.size(),
                         finding.output.size(),
                         finding.milliseconds};
  write_all(pipe, &header, sizeof header);
  write_all(pipe, finding.rule.data(), finding.rule.size());
  write_all(pipe, finding.sentence.data(), finding.sentence.size());
  write_all(pipe, finding.output.data(), finding.output.size());
}

bool receive(int pipe, size_t* number, Finding* finding) {
  Header header{};
  if (!read_all(pipe, &header, sizeof header)) return false;
  *number = header.number;
  finding->outcome = static_cast<Outcome>(header.outcome);
  finding->not_claimed = header.not_claimed != 0;
  finding->milliseconds = header.milliseconds;
  finding->rule.resize(header.rule);
  finding->sentence.resize(header.sentence);
  finding->output.resize(header.output);
  return read_all(pipe, finding->rule.data(), header.rule) &&
         read_all(pipe, finding->sentence.data(), header.sentence) &&
         read_all(pipe, finding->output.data(), header.output);
}

// Runs one part after the other until none is left.
[[noreturn]] void work(const std::vector<Test>& tests, const std::vector<Part>& parts, double time_limit, int pipe,
                       std::atomic<size_t>* next) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t at = next->fetch_add(1); at < parts.size(); at = next->fetch_add(1)) {
    std::vector<Test> mine;
    for (size_t number : parts[at]) mine.push_back(tests[number]);
    run_in_children(mine, time_limit, [&](size_t i, const Finding& finding) { send(pipe, parts[at][i], finding); });
  }
  _exit(0);
}

// Collects findings in any order and passes them on in the order of the tests.
class Findings {
 public:
  Findings(const std::vector<Test>& tests, const std::vector<Part>& parts,
           const std::function<void(size_t, const Finding&)>& done)
      : found_(tests.size()), missing_(tests.size(), 0), done_(done) {
    for (const Part& part : parts) {
      for (size_t number : part) ++missing_[number];
    }
  }
  void take(size_t number, Finding finding) {
    Finding& kept = found_[number];
    finding.milliseconds += kept.milliseconds;
    if (!is_bad(kept.outcome)) kept = std::move(finding);
    --missing_[number];
    hand_on();
  }
  // Called after the last finding. A test without a finding was lost with a process of the kit.
  void close() {
    for (size_t i = next_; i < missing_.size(); ++i) {
      if (missing_[i] == 0) continue;
      missing_[i] = 0;
      found_[i] = {
          Outcome::crashed, "the process of the kit that ran it ended before it did (rule X01).", {}, 0, false, "X01"};
    }
    hand_on();
  }

 private:
  void hand_on() {
    for (; next_ < found_.size() && missing_[next_] == 0; ++next_) done_(next_, found_[next_]);
  }

  std::vector<Finding> found_;
  std::vector<int> missing_;
  size_t next_ = 0;
  const std::function<void(size_t, const Finding&)>& done_;
};

void gather(std::vector<pollfd> pipes, Findings* findings) {
  const auto open = [](const pollfd& one) { return one.fd >= 0; };
  while (std::any_of(pipes.begin(), pipes.end(), open)) {
    if (poll(pipes.data(), pipes.size(), -1) < 0 && errno != EINTR) break;
    for (pollfd& pipe : pipes) {
      if (pipe.fd < 0 || pipe.revents == 0) continue;
      size_t number = 0;
      Finding finding;
      if (receive(pipe.fd, &number, &finding)) {
        findings->take(number, std::move(finding));
      } else {
        close(std::exchange(pipe.fd, -1));
      }
    }
  }
}

}  // namespace

void run_in_jobs(const std::vector<Test>& tests, double time_limit, int jobs,
                 const std::function<void(size_t, const Finding&)>& done) {
  const std::vector<Part> parts = parts_of(tests, static_cast<size_t>(jobs));
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("tenon-conform: jobs cannot be prepared");
    std::exit(2);
  }
  auto* next = new (shared) std::atomic<size_t>(0);
  std::vector<pollfd> pipes;
  std::vector<pid_t> workers;
  std::fflush(nullptr);
  for (size_t job = 0; job < std::min(static_cast<size_t>(jobs), parts.size()); ++job) {
    int pair[2];
    const pid_t worker = pipe(pair) == 0 ? fork() : -1;
    if (worker < 0) {
      std::perror("tenon-conform: a job cannot be started");
      break;
    }
    if (worker == 0) {
      for (const pollfd& other : pipes) close(other.fd);
      close(pair[0]);
      work(tests, parts, time_limit, pair[1], next);
    }
    close(pair[1]);
    pipes.push_back({pair[0], POLLIN, 0});
    workers.push_back(worker);
  }
  Findings findings(tests, parts, done);
  gather(pipes, &findings);
  for (pid_t worker : workers) {
    while (waitpid(worker, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  findings.close();
  munmap(shared, sizeof(std::atomic<size_t>));
}

}  // namespace tenon::conformance
