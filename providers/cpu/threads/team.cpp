#include "providers/cpu/threads/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "sdk/provider/floating_point.h"

namespace tenon::provider::cpu {
namespace {

std::mutex idle_mutex;
Team* idle = nullptr;  // linked list

// Two regions of a team get the same number after 2^40 regions, which takes weeks. Before that, a thread that has read
// the state of one region cannot take a part of the other.
constexpr int part_bits = 24;
constexpr uint64_t part_mask = (uint64_t{1} << part_bits) - 1;

thread_local const pid_t own_thread = gettid();

// Restricts this thread to the processors of `thread` except one. Returns false if none would remain.
bool keep_off(int processor, pid_t thread) {
  cpu_set_t set;
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return false;
  CPU_CLR(static_cast<size_t>(processor), &set);
  return CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0;
}

// Leaves signals to the threads of the program. oneDNN's kernels keep data below their stack pointer, where a handler
// would write. Signals that say what this thread did itself reach it.
void block_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&signals, own);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

struct Team::Place {
  Team* team = nullptr;  // NULL if the thread is in no region of several threads
  int32_t part = 0;
  int32_t runner = 0;
  int32_t nested = 0;  // regions of one thread within the region
};

thread_local Team::Place Team::place;

int32_t Team::part() { return place.nested > 0 ? 0 : place.part; }
int32_t Team::runner() { return place.nested > 0 ? 0 : place.runner; }
bool Team::is_inside() { return place.team != nullptr; }
bool Team::is_in_region() { return place.team != nullptr || place.nested > 0; }

int32_t Team::parts() {
  return place.team == nullptr || place.nested > 0 ? 1 : place.team->parts_.load(std::memory_order_relaxed);
}

void Team::barrier() {
  if (parts() == 1) return;
  Team& team = *place.team;
  const uint32_t seen = team.barrier_.value();
  if (team.arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts()) return team.barrier_.wait(seen);
  team.arrived_.store(0, std::memory_order_relaxed);
  team.barrier_.raise(true);
}

void Team::run(Body body, void* data, int32_t width, int32_t parts, bool wakes) {
  Team* team = width > 1 && place.team == nullptr ? take() : nullptr;
  const Place before = place;
  if (team == nullptr) {
    ++place.nested;
    body(data);
  } else {
    team->lead(body, data, width, parts, wakes);
    give_back(team);
  }
  place = before;
}

void Team::lead(Body body, void* data, int32_t width, int32_t parts, bool wakes) {
  hire(width);
  width = std::min(width, workers_ + 1);
  if (parts == 0) parts = width;
  body_.store(body, std::memory_order_relaxed);
  data_.store(data, std::memory_order_relaxed);
  width_.store(width, std::memory_order_relaxed);
  parts_.store(parts, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  leader_.store(own_thread, std::memory_order_relaxed);
  leader_processor_.store(sched_getcpu(), std::memory_order_relaxed);
  const uint32_t seen = end_.value();
  const uint64_t region = (open_.load(std::memory_order_relaxed) >> part_bits) + 1;
  open_.store(region << part_bits | static_cast<uint64_t>(parts - 1), std::memory_order_release);
  begin_.raise(wakes);
  place = {this, 0, 0, 0};
  body(data);
  while (run_part(0)) {
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts) end_.wait(seen);
}

// Takes a part of the open region and runs it. Returns false if there is none for this thread. The thread that finishes
// the last part wakes the caller, and does not touch the region afterwards. The caller counts part 0 when it finds no
// further part, so it needs a signal only if another thread is last.
bool Team::run_part(int32_t runner) {
  uint64_t open = open_.load(std::memory_order_acquire);
  for (;;) {
    const auto left = static_cast<int32_t>(open & part_mask);
    const Body body = body_.load(std::memory_order_relaxed);
    void* const data = data_.load(std::memory_order_relaxed);
    const int32_t parts = parts_.load(std::memory_order_relaxed);
    if (left == 0 || runner >= width_.load(std::memory_order_relaxed)) return false;
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    place = {this, parts - left, runner, 0};
    body(data);
    place = {};
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) end_.raise(true);
    return true;
  }
}

void Team::hire(int32_t width) {
  while (workers_ + 1 < width) {
    const uint32_t seen = begin_.value();
    try {
      std::thread([this, runner = workers_ + 1, seen] { work(runner, seen); }).detach();
    } catch (const std::system_error&) {
      return;
    }
    ++workers_;
  }
}

// The main loop of a worker.
void Team::work(int32_t runner, uint32_t seen) {
  block_signals();
  const provider::DefaultFloatingPoint floating_point;  // a thread inherits the state of the one that starts it
  bool moves = true;
  // The system often wakes a worker on the processor of the caller, which cannot run while the worker runs and spins.
  const auto leave_caller = [&] {
    const int processor = leader_processor_.load(std::memory_order_relaxed);
    if (moves && processor >= 0 && processor == sched_getcpu())
      moves = keep_off(processor, leader_.load(std::memory_order_relaxed));
  };
  for (;;) {
    leave_caller();
    begin_.wait(seen);
    leave_caller();
    seen = begin_.value();
    while (run_part(runner)) {
    }
  }
}

// Returns NULL if there is no memory for another team.
Team* Team::take() {
  // The workers do not exist in a forked child, so it starts without teams.
  static const int registered = pthread_atfork([] { idle_mutex.lock(); }, [] { idle_mutex.unlock(); },
                                               [] {
                                                 idle = nullptr;
                                                 idle_mutex.unlock();
                                               });
  static_cast<void>(registered);
  {
    const std::lock_guard lock(idle_mutex);
    if (idle != nullptr) return std::exchange(idle, idle->next_);
  }
  return new (std::nothrow) Team;
}

void Team::give_back(Team* team) {
  const std::lock_guard lock(idle_mutex);
  team->next_ = std::exchange(idle, team);
}

}  // namespace tenon::provider::cpu
