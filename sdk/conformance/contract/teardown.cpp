// Checks at the end: the provider holds no memory, has printed nothing, and the process exits without a crash.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {
namespace {

Status nothing_held(const Subject& subject, std::string_view rule, std::string_view when) {
  const Host& host = subject.host;
  if (host.bytes_held() == 0 && host.errors_alive() == 0 && host.device_bytes() == 0) return {};
  return broken(rule,
                "{} the plug-in was shut down and holds {} bytes of the host's memory and {} errors, and has reported "
                "{} bytes of its own",
                when, host.bytes_held(), host.errors_alive(), host.device_bytes());
}

}  // namespace

Status teardown_null(Subject& subject) {
  const ep_device_ops& ops = subject.ops;
  subject.destroy(static_cast<ep_memory*>(nullptr));
  subject.destroy(static_cast<ep_stream*>(nullptr));
  if (ops.event_destroy != nullptr) subject.destroy(static_cast<ep_event*>(nullptr));
  if (ops.primitive_destroy != nullptr) subject.destroy(static_cast<ep_primitive*>(nullptr));
  if (ops.graph_destroy != nullptr) subject.destroy(static_cast<ep_graph*>(nullptr));
  if (ops.command_list_destroy != nullptr) subject.destroy(static_cast<ep_command_list*>(nullptr));
  if (ops.semaphore_destroy != nullptr) ops.semaphore_destroy(subject.device, nullptr);
  return exercise(subject);
}

Status teardown_leaks(Subject& subject) {
  TENON_RETURN_IF_ERROR(exercise(subject));
  subject.close();
  return nothing_held(subject, "L01", "after use");
}

Status teardown_again(Subject& subject) {
  for (int round = 0; round < 5; ++round) {
    TENON_RETURN_IF_ERROR(exercise(subject).with_context("  in one of five times that one process opened it"));
    subject.close();
  }
  return nothing_held(subject, "L01", "after five lives");
}

namespace {

// Makes allocation `number` of the host fail while the sample `only` is used.
Status fail_allocation(Subject& subject, size_t only, int64_t number) {
  subject.host.fail_allocation_after(number);
  const Status status = exercise(subject, only);
  subject.close();
  if (!status.ok() && status.code() != Code::out_of_host_memory) {
    return broken("O01", "allocation {} of the host failed, and a call answered '{}', not 'out of host memory': {}",
                  number, code_name(status.code()), without_rule(status).message());
  }
  TENON_RETURN_IF_ERROR(subject.host.take_violation());
  return nothing_held(subject, "O01", fmt::format("allocation {} of the host failed, then", number));
}

Result<int64_t> count_allocations(Subject& subject, size_t only) {
  const int64_t before = subject.host.allocations();
  const Status status = exercise(subject, only);
  subject.close();
  if (!status.ok()) return status;
  return subject.host.allocations() - before;
}

}  // namespace

// Makes the host's allocations fail one by one, from the query to the shutdown, for each kind that the provider claims.
// Each failure must make a call fail or have no effect; it must never cause a crash, a leak or a wrong result.
// Afterwards everything must work.
Status host_memory_fails(Subject& subject) {
  TENON_RETURN_IF_ERROR(exercise(subject));
  const size_t kinds = find_sound_samples(subject).size();
  subject.close();
  constexpr int64_t most = 400;
  TENON_ASSIGN_OR_RETURN(const int64_t without, count_allocations(subject, kinds));
  for (size_t only = 0; only < std::max<size_t>(kinds, 1); ++only) {
    TENON_ASSIGN_OR_RETURN(const int64_t count, count_allocations(subject, only));
    const int64_t first = only == 0 ? 0 : std::min(without, count);
    for (int64_t i = first; i < std::min(count, first + most); ++i) {
      TENON_RETURN_IF_ERROR(fail_allocation(subject, only, i));
    }
  }
  subject.host.fail_allocation_after(-1);
  return exercise(subject).with_context("  after each allocation of the host has failed once");
}

namespace {

// A provider that fails without blobs has a defect unrelated to its blobs.
Status works_without_blobs(Subject& subject) {
  subject.host.keep_blobs(Host::Blobs::none);
  for (int time = 0; time < 3; ++time) {
    TENON_RETURN_IF_ERROR(exercise(subject));
    subject.close();
  }
  return {};
}

}  // namespace

// Starts the plug-in three times with one store of blobs: the second and third start find the blobs of the one before.
// Then a start without blobs.
Status host_keeps_blobs(Subject& subject) {
  subject.host.keep_blobs(Host::Blobs::kept);
  for (const char* life : {"the first", "the second", "the third"}) {
    const Status used = exercise(subject);
    subject.close();
    if (used.code() == skip_code) return used;
    if (!used.ok()) TENON_RETURN_IF_ERROR(works_without_blobs(subject));
    if (!used.ok())
      return broken("H03", "in {} of three lives with one store of blobs: {}", life, without_rule(used).message());
    if (const Status violation = subject.host.take_violation(); !violation.ok()) return violation;
  }
  subject.host.keep_blobs(Host::Blobs::none);
  TENON_RETURN_IF_ERROR(exercise(subject).with_context("  where no blob is known"));
  subject.close();
  return nothing_held(subject, "L01", "after lives with blobs");
}

// A process that used the provider exits normally.
Status teardown_exit(Subject& subject) {
  const pid_t child = fork();
  if (child < 0) return skipped("no process can be started.");
  if (child == 0) {
    {
      Subject mine(subject.target);
      if (!exercise(mine).ok()) _exit(inner_failure);
    }
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return broken("X01", "a process that used it died at exit of signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == inner_failure) return skipped("it does not work in the first place.");
  if (WEXITSTATUS(status) != 0)
    return broken("X01", "a process that used it ended with exit code {}", WEXITSTATUS(status));
  return {};
}

Status process_prints_nothing(Subject& subject) {
  std::FILE* sink = std::tmpfile();
  if (sink == nullptr) return skipped("no temporary file can be made.");
  std::fflush(nullptr);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  dup2(fileno(sink), STDOUT_FILENO);
  dup2(fileno(sink), STDERR_FILENO);
  const Status used = exercise(subject);
  subject.close();
  std::fflush(nullptr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  char text[200] = {};
  const ssize_t printed = pread(fileno(sink), text, sizeof text - 1, 0);
  std::fclose(sink);
  TENON_RETURN_IF_ERROR(used);
  if (printed > 0) return broken("X03", "it printed '{}'", std::string_view(text, std::strcspn(text, "\n")));
  return {};
}

}  // namespace tenon::conformance
