#include "sdk/conformance/test.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "primitives/text/format.h"
#include "sdk/conformance/pipe.h"
#include "sdk/conformance/running.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t most_output = 2000;

struct Frame {
  int16_t outcome;
  uint8_t not_claimed;
  uint8_t is_last;  // the process ends after this test
  uint32_t rule;    // bytes of the rule and the sentence, which follow
  uint32_t sentence;
  double milliseconds;
  int64_t output_end;  // bytes printed so far: the child may be ahead of the reader
};

// The test that this process runs, for end_process.
struct Current {
  const Test* test = nullptr;
  pid_t process = -1;
  Clock::time_point begin;
  std::function<void(const Finding&)> report;  // reports a finding before the process ends
};
Current current;

void take_failure(const Status& failure, Finding* finding) {
  finding->rule = failure.parts().rule;
  finding->sentence = failure.message();
}

Finding finding_of(const Test& test, const Status& status, Clock::time_point begin) {
  Finding finding;
  finding.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (status.ok()) return finding;
  finding.outcome = status.code() == skip_code ? Outcome::skipped : Outcome::failed;
  finding.not_claimed = is_unclaimed(status);
  if (finding.outcome == Outcome::failed) {
    take_failure(with_default_rule(status, test.rule), &finding);
  } else {
    finding.sentence = status.message();
  }
  return finding;
}

Finding run_one(const Test& test, std::function<void(const Finding&)> report) {
  current = {&test, getpid(), Clock::now(), std::move(report)};
  Status status;
  try {
    status = test.run();
  } catch (const std::exception& thrown) {
    status = Status(Code::internal, fmt::format("the kit itself failed: {}.", thrown.what()));
  }
  return finding_of(test, status, current.begin);
}

bool send(int results, int output, const Finding& finding, bool is_last) {
  std::fflush(nullptr);
  const Frame frame = {static_cast<int16_t>(finding.outcome),
                       finding.not_claimed,
                       is_last,
                       static_cast<uint32_t>(finding.rule.size()),
                       static_cast<uint32_t>(finding.sentence.size()),
                       finding.milliseconds,
                       lseek(output, 0, SEEK_END)};
  return write_all(results, &frame, sizeof frame) && write_all(results, finding.rule.data(), finding.rule.size()) &&
         write_all(results, finding.sentence.data(), finding.sentence.size());
}

// goes_on: the child continues with the next test. ends: the test has ended the child after its finding. died: the
// child crashed or hung.
enum class Life : uint8_t { goes_on, ends, died };

// The parent's view of a child that runs `tests[numbers...]` one after the other.
class Child {
 public:
  Child(const std::vector<Test>& tests, const std::vector<size_t>& numbers);
  ~Child();
  // Returns the finding of the next test; `life` gets the state of the child.
  Finding next(double time_limit, Life* life);

 private:
  enum class Read : uint8_t { whole, ended, hung };
  Read read_all(void* data, size_t size, double time_limit);
  Finding ended(bool hung, double time_limit);
  std::string take_output(int64_t end);

  Running* running_ = nullptr;  // shared with the child
  pid_t pid_ = -1;
  int results_ = -1, output_ = -1;
  int64_t output_seen_ = 0;
};

[[noreturn]] void serve(const std::vector<Test>& tests, const std::vector<size_t>& numbers, int results, int output,
                        Running* running) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (size_t number : numbers) {
    note_into(running);
    const Finding finding = run_one(tests[number], [=](const Finding& last) { send(results, output, last, true); });
    if (!send(results, output, finding, false)) break;
  }
  _exit(0);
}

Child::Child(const std::vector<Test>& tests, const std::vector<size_t>& numbers) {
  int pair[2];
  output_ = memfd_create("tenon-conform output", MFD_CLOEXEC);
  void* const shared = mmap(nullptr, sizeof(Running), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (output_ < 0 || shared == MAP_FAILED || pipe(pair) != 0) {
    std::perror("tenon-conform: a child process cannot be prepared");
    std::exit(2);
  }
  running_ = static_cast<Running*>(shared);
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) {
    std::perror("tenon-conform: a child process cannot be started");
    std::exit(2);
  }
  if (pid_ == 0) {
    close(pair[0]);
    serve(tests, numbers, pair[1], output_, running_);
  }
  close(pair[1]);
  results_ = pair[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(results_);
  close(output_);
  munmap(running_, sizeof(Running));
}

// Each period of `time_limit` in which the child calls the provider is followed by another one.
Child::Read Child::read_all(void* data, size_t size, double time_limit) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const uint64_t calls = running_->calls;
    pollfd ready = {results_, POLLIN, 0};
    const int polled = poll(&ready, 1, std::max(1, static_cast<int>(1e3 * time_limit)));
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0 && running_->calls != calls) continue;
    if (polled == 0) return Read::hung;
    const ssize_t count = read(results_, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Read::ended;
    at += count;
    size -= static_cast<size_t>(count);
  }
  return Read::whole;
}

std::string Child::take_output(int64_t end) {
  std::string text(static_cast<size_t>(std::clamp<int64_t>(end - output_seen_, 0, most_output)), '\0');
  const ssize_t count = pread(output_, text.data(), text.size(), output_seen_);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  output_seen_ = end;
  return text;
}

Finding Child::next(double time_limit, Life* life) {
  const auto begin = Clock::now();
  Frame frame{};
  Finding finding;
  Read got = read_all(&frame, sizeof frame, time_limit);
  if (got == Read::whole) {
    finding.rule.resize(frame.rule);
    finding.sentence.resize(frame.sentence);
    got = read_all(finding.rule.data(), frame.rule, time_limit);
  }
  if (got == Read::whole) got = read_all(finding.sentence.data(), frame.sentence, time_limit);
  *life = got != Read::whole ? Life::died : frame.is_last != 0 ? Life::ends : Life::goes_on;
  if (*life == Life::died) {
    finding = ended(got == Read::hung, time_limit);
    finding.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    return finding;
  }
  finding.outcome = static_cast<Outcome>(frame.outcome);
  finding.not_claimed = frame.not_claimed != 0;
  finding.milliseconds = frame.milliseconds;
  finding.output = take_output(frame.output_end);
  return finding;
}

Finding Child::ended(bool hung, double time_limit) {
  if (hung) kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  Finding finding;
  finding.output = take_output(lseek(output_, 0, SEEK_END));
  if (hung) {
    finding.outcome = Outcome::hung;
    take_failure(broken("X02", "it made no new call for {:g} s{}{}", time_limit, call_text(*running_),
                        descriptor_text(*running_)),
                 &finding);
    return finding;
  }
  finding.outcome = Outcome::crashed;
  const std::string how =
      WIFSIGNALED(status)
          ? fmt::format("its process died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
          : fmt::format("its process was ended from within, with exit code {}", WEXITSTATUS(status));
  take_failure(broken("X01", "{}{}{}", how, call_text(*running_), descriptor_text(*running_)), &finding);
  return finding;
}

Finding run_alone(const std::vector<Test>& tests, size_t number, double time_limit) {
  Life life = Life::died;
  Child child(tests, {number});
  return child.next(time_limit, &life);
}

// Runs tests in one child until a test ends it. Returns the number of tests that have a finding.
size_t run_sharing(const std::vector<Test>& tests, const std::vector<size_t>& numbers, double time_limit,
                   const std::function<void(size_t, const Finding&)>& done) {
  Child child(tests, numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    Life life = Life::died;
    Finding finding = child.next(time_limit, &life);
    if (life != Life::died) {
      done(numbers[i], finding);
      if (life == Life::ends) return i + 1;
      continue;
    }
    const Finding alone = run_alone(tests, numbers[i], time_limit);
    if (is_bad(alone.outcome)) {
      finding = alone;
    } else {
      finding.sentence += "\n  after the tests before it; alone it does not";
    }
    done(numbers[i], finding);
    return i + 1;
  }
  return numbers.size();
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view names[outcome_count] = {"passed",  "failed",           "crashed",        "hung",
                                                     "skipped", "expected failure", "unexpected pass"};
  return names[static_cast<size_t>(outcome)];
}

void end_process(const Status& status) {
  static std::atomic_flag ending;
  while (ending.test_and_set()) pause();  // another thread of the test is ending the process
  if (getpid() != current.process) _exit(inner_failure);
  current.report(finding_of(*current.test, status, current.begin));
  std::fflush(nullptr);
  _exit(1);
}

void run_in_children(const std::vector<Test>& tests, double time_limit,
                     const std::function<void(size_t, const Finding&)>& done) {
  for (size_t i = 0; i < tests.size();) {
    if (!tests[i].shares_process) {
      done(i, run_alone(tests, i, time_limit));
      ++i;
      continue;
    }
    std::vector<size_t> sharing;
    for (size_t j = i; j < tests.size() && tests[j].shares_process; ++j) sharing.push_back(j);
    i += run_sharing(tests, sharing, time_limit, done);
  }
}

void run_here(const std::vector<Test>& tests, const std::function<void(size_t, const Finding&)>& done) {
  for (size_t i = 0; i < tests.size(); ++i) {
    done(i, run_one(tests[i], [&](const Finding& last) {
           done(i, last);
           std::printf("The process cannot go on after this test. Without --in-process it costs that test alone.\n");
         }));
  }
}

}  // namespace tenon::conformance
