#include "providers/cpu/threads/lease.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "providers/cpu/threads/clock.h"
#include "providers/cpu/threads/openmp.h"
#include "providers/cpu/threads/stop.h"
#include "providers/cpu/threads/team.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t worth_taking = 50'000;  // nanoseconds of work
constexpr int64_t worth_keeping = 3'000;
constexpr int64_t idle_limit = 1'000'000;
// If a region took longer, it waited for a processor that another program used.
constexpr int64_t waited(int64_t nanoseconds) { return 4 * nanoseconds + 200'000; }
// Then no regions are opened for a multiple of the excess time. Each further such region doubles the multiple.
constexpr int64_t fewest_times = 3;
constexpr int64_t longest_pause = 640'000'000;

// Identifies the holding thread; its lowest bit is set during a region. 0: nobody holds the lease.
std::atomic<uintptr_t> holder{0};
std::atomic<int64_t> last_use{0};
std::atomic<int64_t> narrow_until{0};
std::atomic<int64_t> times{fewest_times};
thread_local char mark alignas(2);

// The number of WideLease objects with work for several threads; and the number of others that one of them saw lately,
// because callers pause between launches.
std::atomic<int32_t> callers{0};
std::atomic<int32_t> others_seen{0};
std::atomic<int64_t> others_until{0};

// The work that this thread lately wanted to run on several threads. Many short pieces within a millisecond earn the
// lease like one long piece.
struct Recent {
  int64_t since = 0;
  int64_t work = 0;
};
thread_local Recent recent;

// Adds to the work of the last millisecond. Returns true if it is worth a lease.
bool has_earned(Recent* recent, int64_t nanoseconds, int64_t time) {
  if (time - recent->since > idle_limit) *recent = {time, 0};
  recent->work += nanoseconds;
  return recent->work >= worth_taking;
}

bool is_worth_taking(int64_t nanoseconds, int64_t time) {
  return nanoseconds >= worth_taking || has_earned(&recent, nanoseconds, time);
}

int32_t other_callers(int32_t others, int64_t time) {
  const bool is_recent = time < others_until.load(std::memory_order_relaxed);
  if (is_recent) others = std::max(others, others_seen.load(std::memory_order_relaxed));
  return others;
}

// Seeing fewer callers than before does not extend the time for which the larger number is remembered.
void note_others(int32_t others) {
  const int64_t time = now();
  if (other_callers(others, time) > others) return;
  others_seen.store(others, std::memory_order_relaxed);
  others_until.store(time + idle_limit, std::memory_order_relaxed);
}

// Returns the width of the region that this thread may open; 1: no region.
int32_t acquire(int32_t limit, int32_t others, int64_t nanoseconds) {
  const auto me = reinterpret_cast<uintptr_t>(&mark);
  uintptr_t seen = holder.load(std::memory_order_relaxed);
  if ((seen & 1U) != 0) return 1;
  const int64_t time = now();
  if (time < narrow_until.load(std::memory_order_relaxed)) return 1;
  const int32_t width = limit - other_callers(others, time);
  if (width <= 1) return 1;
  const bool awake = time - last_use.load(std::memory_order_relaxed) < idle_limit;
  if (seen != me && seen != 0 && awake) return 1;
  if (!(seen == me && awake) && !is_worth_taking(nanoseconds, time)) return 1;
  if (omp_in_parallel() != 0 || !holder.compare_exchange_strong(seen, me | 1U, std::memory_order_acquire)) return 1;
  last_use.store(time, std::memory_order_relaxed);
  return width;
}

void note_region(int64_t nanoseconds, int64_t taken, int64_t time) {
  if (taken <= waited(nanoseconds)) return times.store(fewest_times, std::memory_order_relaxed);
  const int64_t pause = std::min(times.load(std::memory_order_relaxed) * (taken - nanoseconds), longest_pause);
  narrow_until.store(time + pause, std::memory_order_relaxed);
  if (pause < longest_pause) times.store(2 * times.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// The shortest part: short enough that the last one ends soon after the others, long enough that taking it costs
// little.
constexpr int64_t part_length = 4'000;
constexpr int32_t most_levels = 5;
// Waking a worker costs the caller microseconds, and the worker starts tens of microseconds later. So a shorter piece
// of work alone wakes nobody, but a series of them does: the worker then helps with later pieces.
constexpr int64_t worth_waking = 30'000;
thread_local Recent short_work;

bool is_worth_waking(int64_t nanoseconds) {
  if (nanoseconds >= worth_waking) return true;
  const bool earned = has_earned(&short_work, nanoseconds, now());
  if (earned) short_work.work = 0;
  return earned;
}

int32_t levels_of(int64_t nanoseconds, int32_t width) {
  int32_t levels = 0;
  while (levels < most_levels && nanoseconds / width >> (levels + 1) >= part_length) ++levels;
  return levels;
}

constexpr int32_t most_width = 256;

// Long work is cut into rounds, each of them a region, so that it can stop between two of them. Their
// number is limited, so that elements times parts fits in 64 bits.
constexpr int64_t round_length = 20'000'000;
constexpr int64_t most_rounds = 4096;

int32_t rounds_of(int64_t nanoseconds, int32_t width) {
  return static_cast<int32_t>(std::clamp<int64_t>(nanoseconds / width / round_length, 1, most_rounds));
}

// One round of `rounds`: its parts are parts of the whole.
struct Round {
  void (*body)(const void*, int32_t, int32_t);
  const void* context;
  int32_t round;
  int32_t rounds;
};

// A region of `width` threads, each with a range of the work; all ranges have the same length. The parts of a range
// are half of it, half of the rest, and so on; the last level is repeated to make the whole. So a thread runs few
// parts, and still the last parts are short. A thread takes the parts of its own range, so that it meets the memory
// that it met in the region before, and when that has none left, those of the next range that has. Source: S. Flynn
// Hummel, E. Schonberg, L. E. Flynn, "Factoring: a method for scheduling parallel loops", 1992.
struct Region {
  void (*body)(const void*, int32_t, int32_t);
  const void* context;
  int32_t width;
  int32_t levels;
  std::atomic<int32_t> taken[most_width];  // number of parts of each range that are taken
};

// Runs one part that nobody has taken. There is always one, because the function is called once per part.
void run_part(Region* region, int32_t runner) {
  int32_t range = runner % region->width;
  int32_t level = region->taken[range].fetch_add(1, std::memory_order_relaxed);
  while (level > region->levels) {
    range = (range + 1) % region->width;
    level = region->taken[range].fetch_add(1, std::memory_order_relaxed);
  }
  const bool is_last = level == region->levels;
  const int32_t parts = 1 << (is_last ? level : level + 1);  // number of parts of this length per range
  region->body(region->context, range * parts + parts - (is_last ? 1 : 2), region->width * parts);
}

// In a forked child, the other threads no longer exist, so their calls and the lease are forgotten.
void forget_others() {
  holder.store(0, std::memory_order_relaxed);
  callers.store(0, std::memory_order_relaxed);
  others_until.store(0, std::memory_order_relaxed);
}

}  // namespace

WideLease::WideLease(int32_t limit, int64_t nanoseconds)
    : nanoseconds_(nanoseconds), counts_(limit > 1 && nanoseconds >= worth_keeping) {
  if (!counts_) return;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_others);
  static_cast<void>(registered);
  const int32_t others = callers.fetch_add(1, std::memory_order_relaxed);
  if (others > 0) note_others(others);
  width_ = acquire(limit, others, nanoseconds);
}

WideLease::~WideLease() {
  if (!counts_) return;
  callers.fetch_sub(1, std::memory_order_relaxed);
  if (width_ == 1) return;
  const int64_t time = now();
  note_region(nanoseconds_, time - last_use.load(std::memory_order_relaxed), time);
  last_use.store(time, std::memory_order_relaxed);
  holder.store(reinterpret_cast<uintptr_t>(&mark), std::memory_order_release);
}

namespace {

void run_round(int32_t width, int64_t nanoseconds, void (*body)(const void*, int32_t, int32_t), const void* context) {
  if (width == 1) return body(context, 0, 1);
  Region region;
  region.body = body;
  region.context = context;
  region.width = width;
  region.levels = levels_of(nanoseconds, width);
  for (int32_t i = 0; i < width; ++i) region.taken[i].store(0, std::memory_order_relaxed);
  Team::run(
      [](void* data) {
        Region& r = *static_cast<Region*>(data);
        if (Team::parts() == 1) return r.body(r.context, 0, 1);
        run_part(&r, Team::runner());
      },
      &region, width, width * (region.levels + 1), is_worth_waking(nanoseconds));
}

}  // namespace

void run_parts(int32_t width, int64_t nanoseconds, void (*body)(const void*, int32_t, int32_t), const void* context) {
  width = std::min(width, most_width);
  const int32_t rounds = rounds_of(nanoseconds, width);
  stop_if_wanted();
  if (rounds == 1) return run_round(width, nanoseconds, body, context);
  for (int32_t round = 0; round < rounds; ++round) {
    const Round one{body, context, round, rounds};
    run_round(
        width, nanoseconds / rounds,
        [](const void* data, int32_t part, int32_t parts) {
          const Round& r = *static_cast<const Round*>(data);
          r.body(r.context, r.round * parts + part, r.rounds * parts);
        },
        &one);
    stop_if_wanted();
  }
}

void run_together(int32_t width, void (*body)(const void*, int32_t, int32_t), const void* context) {
  struct Whole {
    void (*body)(const void*, int32_t, int32_t);
    const void* context;
  } whole{body, context};
  Team::run(
      [](void* data) {
        const Whole& w = *static_cast<Whole*>(data);
        w.body(w.context, Team::part(), Team::parts());
      },
      &whole, width);
}

void wait_for_others() { Team::barrier(); }

int32_t runner() { return Team::runner(); }

OpenMpWidth::OpenMpWidth(int32_t width) : before_(region_width()), width_(width) {
  if (before_ != width_) set_region_width(width_);
}

OpenMpWidth::~OpenMpWidth() {
  if (before_ != width_) set_region_width(before_);
}

}  // namespace tenon::provider::cpu
