// DeviceQueue's launch thread, and the functions by which waiting threads do its work.
#include <algorithm>

#include "core/device/process.h"
#include "core/vm/engine.h"
#include "primitives/status/start_thread.h"

namespace tenon::vm {
namespace {

using std::chrono::nanoseconds;

constexpr uint64_t kBudget = 4 * Stream::kRing;
constexpr int kLooks = 100;  // checks for work before the launch thread parks
constexpr nanoseconds kFirstNap{50'000};
constexpr nanoseconds kLongestNap{4'000'000};
constexpr uint64_t kElsewhereNs = 100'000;

void pause_briefly() {
  for (int i = 0; i < 20; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

void DeviceQueue::notify() {
  if (!started_.load(std::memory_order_acquire)) [[unlikely]] {
    std::lock_guard lock(park_mutex_);
    if (started_.load(std::memory_order_relaxed) || stopping_) return;
    // If no thread can start, waiting threads launch instead. The next submission tries again.
    if (start_thread(&thread_, [this] { run_thread(); })) started_.store(true, std::memory_order_release);
    return;
  }
  if (!parked_.load(std::memory_order_seq_cst)) return;
  std::lock_guard lock(park_mutex_);
  parked_.store(false, std::memory_order_relaxed);
  park_changed_.notify_one();
}

void DeviceQueue::run_thread() {
  enter_vm_thread();
  nanoseconds nap = kFirstNap;
  for (int looks = 0; !stopping_.load(std::memory_order_relaxed);) {
    const uint64_t seen = news();
    bool moved = false;
    Ticket elsewhere;
    {
      DeleterScope deleters;
      std::lock_guard right(right_);
      moved = progress(kBudget);
      if (!moved && looks >= kLooks) {
        mark_and_flush();
        elsewhere = blocked_on();
      }
    }
    if (moved) {
      looks = 0;
      nap = kFirstNap;
      if (waiting_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
    } else if (looks < kLooks) {
      ++looks;
      pause_briefly();
    } else if (elsewhere) {
      DeviceQueue* other = engine().stream(elsewhere).queue;
      const NextStep step = other->advance(elsewhere);
      if (step.mark != nullptr) other->wait_mark(step.mark, kElsewhereNs);
      if (step.mark == nullptr) rest(seen, kFirstNap);
    } else {
      rest(seen, nap);
      nap = std::min(nap * 2, kLongestNap);
    }
  }
}

// Parks until something is submitted (news() differs from `seen`). If work is under way, parks for at most `nap`, and
// then checks its progress.
void DeviceQueue::rest(uint64_t seen, nanoseconds nap) {
  std::unique_lock lock(park_mutex_);
  parked_.store(true, std::memory_order_seq_cst);
  const auto awake = [this] {
    return stopping_.load(std::memory_order_relaxed) || !parked_.load(std::memory_order_relaxed);
  };
  if (news() == seen) {
    if (outstanding()) {
      park_changed_.wait_for(lock, nap, awake);
    } else {
      park_changed_.wait(lock, awake);
    }
  }
  parked_.store(false, std::memory_order_relaxed);
}

void DeviceQueue::wait_host(Ticket ticket, uint64_t timeout_ns) {
  host_thread_.wait(engine().stream(ticket), ticket.number(), timeout_ns);
}

void DeviceQueue::host_function_ended() {
  host_ends_.fetch_add(1, std::memory_order_seq_cst);
  notify();
}

void DeviceQueue::stop() {
  {
    std::lock_guard lock(park_mutex_);
    stopping_.store(true);
    park_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  host_thread_.stop();
}

// If the next instruction of a stream waits for a ticket that only the host can wait for and that sends no
// notification, returns that ticket.
Ticket DeviceQueue::blocked_on() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (launched == stream.submitted.load(std::memory_order_acquire)) continue;
    for (Ticket ticket : stream.slot(launched + 1).deps) {
      const Stream& other = engine().stream(ticket);
      const bool by_host = other.queue != this || (stream.on_host && !other.on_host);
      if (by_host && !other.done(ticket.number())) return ticket;
    }
  }
  return {};
}

NextStep DeviceQueue::advance(Ticket ticket) {
  DeleterScope deleters;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard right(right_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  progress(kBudget);
  return next_step(ticket);
}

NextStep DeviceQueue::hand_over(Stream& stream, uint64_t number) {
  DeleterScope deleters;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard right(right_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  progress(kBudget);
  if (stream.launched.load(std::memory_order_relaxed) < number) return next_step(stream.ticket(number));
  flush(stream);
  return {};
}

// Follows the dependences of `ticket` within this device until it finds something that a thread can wait for.
NextStep DeviceQueue::next_step(Ticket ticket) {
  Engine& all = engine();
  for (;;) {
    Stream& stream = all.stream(ticket);
    if (stream.done(ticket.number())) return {};
    Ticket next;
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (launched < ticket.number()) {
      for (Ticket dep : stream.slot(launched + 1).deps) {
        Stream& other = all.stream(dep);
        if (other.done(dep.number())) continue;
        const bool by_host = other.queue != this || stream.on_host || other.on_host;
        if (by_host || other.launched.load(std::memory_order_relaxed) < dep.number()) next = dep;
      }
      if (stream.on_host && stream.completed < launched) next = stream.ticket(launched);
    } else if (stream.on_host && stream.completed < ticket.number()) {
      return {nullptr, {}, ticket};
    } else if (stream.completed < ticket.number()) {
      EventMark* mark = event_covering(stream, ticket.number());
      if (mark != nullptr) {
        ++mark->pins;
        ++pinned_;
      }
      return {mark, {}, {}};
    } else {
      const Slot& head = stream.slot(stream.retired.load(std::memory_order_relaxed) + 1);
      for (Ticket source : head.all_sources()) {
        if (!is_done(source)) next = source;
      }
    }
    if (!next) return {};
    if (all.stream(next).queue != this) return {nullptr, next, {}};
    ticket = next;
  }
}

}  // namespace tenon::vm
