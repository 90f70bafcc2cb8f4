#include "providers/cpu/threads/lease.h"

#include <time.h>

#include <atomic>

// The entry points of libgomp that -fopenmp of gcc compiles to; clang's would bring a second runtime.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
int omp_in_parallel(void);
}

namespace tenon::provider::cpu {
namespace {

constexpr int64_t worth_taking = 50'000;  // nanoseconds of work
constexpr int64_t worth_keeping = 3'000;
constexpr int64_t idle_limit = 1'000'000;

// The holder's mark, with the lowest bit set while it is in a region; 0: nobody.
std::atomic<uintptr_t> holder{0};
std::atomic<int64_t> last_use{0};
thread_local char mark alignas(2);

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Work this thread would have liked to do wide, of late: much of it in a millisecond earns the lease as one long piece
// does.
struct Recent {
  int64_t since = 0;
  int64_t work = 0;
};
thread_local Recent recent;

bool is_worth_taking(int64_t nanoseconds, int64_t time) {
  if (nanoseconds >= worth_taking) return true;
  if (time - recent.since > idle_limit) recent = {time, 0};
  recent.work += nanoseconds;
  return recent.work >= worth_taking;
}

bool acquire(int64_t nanoseconds) {
  const auto me = reinterpret_cast<uintptr_t>(&mark);
  uintptr_t seen = holder.load(std::memory_order_relaxed);
  if ((seen & 1U) != 0) return false;
  const int64_t time = now();
  const bool awake = time - last_use.load(std::memory_order_relaxed) < idle_limit;
  if (seen != me && seen != 0 && awake) return false;
  if (!(seen == me && awake) && !is_worth_taking(nanoseconds, time)) return false;
  if (omp_in_parallel() != 0 || !holder.compare_exchange_strong(seen, me | 1U, std::memory_order_acquire)) return false;
  last_use.store(time, std::memory_order_relaxed);
  return true;
}

struct Region {
  void (*body)(void*, int32_t, int32_t);
  void* context;
};

}  // namespace

WideLease::WideLease(int32_t limit, int64_t nanoseconds) : nanoseconds_(nanoseconds) {
  if (limit > 1 && nanoseconds >= worth_keeping && acquire(nanoseconds)) width_ = limit;
}

// After short work the time of its beginning is near enough: reading the clock costs what launching a small kernel
// does.
WideLease::~WideLease() {
  if (width_ == 1) return;
  if (nanoseconds_ >= worth_taking) last_use.store(now(), std::memory_order_relaxed);
  holder.store(reinterpret_cast<uintptr_t>(&mark), std::memory_order_release);
}

void run_on_threads(int32_t width, void (*body)(void*, int32_t, int32_t), void* context) {
  Region region{body, context};
  GOMP_parallel(
      [](void* data) {
        const Region& r = *static_cast<Region*>(data);
        r.body(r.context, omp_get_thread_num(), omp_get_num_threads());
      },
      &region, static_cast<unsigned>(width), 0);
}

OpenMpWidth::OpenMpWidth(int32_t width) : before_(omp_get_max_threads()), width_(width) {
  if (before_ != width_) omp_set_num_threads(width_);
}

OpenMpWidth::~OpenMpWidth() {
  if (before_ != width_) omp_set_num_threads(before_);
}

}  // namespace tenon::provider::cpu
