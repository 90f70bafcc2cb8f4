// Team: threads that run the parts of one function together, again and again.
//
// A region is one run of all parts. Part 0 is the caller's; every other part goes to whoever asks next, the caller or
// one of `width` - 1 workers. So nobody waits for a thread that another program keeps from running, unless that thread
// is in the middle of a part: a region ends when all parts are done, and a worker that took none has no say in it.
//
// A function may contain barriers if there are as many parts as threads. For every part that has not begun there is
// then a thread that is in no part, so waiting for that part is safe; and a thread that has finished its part without
// waiting for another one may run that one as well.
//
// A worker keeps off the processor of the caller. Workers live until the process ends. A process has as many teams as
// threads ever opened regions at once, mostly one (see lease.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/cpu/threads/signal.h"

namespace tenon::provider::cpu {

class Team {
 public:
  using Body = void (*)(void*);

  // Runs body(data) for every part on this thread and on up to width - 1 others, on fewer if the system gives no more
  // threads; there are `parts` parts, or one per thread if that is 0. Workers that sleep are woken only if `wakes`.
  // Takes an idle team, or makes one. Within a region, and with a width of 1, there is one part.
  static void run(Body body, void* data, int32_t width, int32_t parts = 0, bool wakes = true);

  // The part that this thread runs, and how many there are; outside of regions 0 and 1.
  static int32_t part();
  static int32_t parts();
  // A number below the region's width that no other thread of the region has.
  static int32_t runner();
  // True within a region of several threads, and within what such a region calls.
  static bool is_inside();
  // True within a region of one thread or of several.
  static bool is_in_region();
  // Waits until all parts of the region have come here.
  static void barrier();

 private:
  struct Place;  // of a thread: its team, and the part that it runs

  void lead(Body body, void* data, int32_t width, int32_t parts, bool wakes);
  void hire(int32_t width);
  void work(int32_t runner, uint32_t seen);
  bool run_part(int32_t runner);

  static Team* take();
  static void give_back(Team* team);
  static thread_local Place place;

  // Of the region. A worker reads them before it takes a part, and perhaps too late; then the taking fails.
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> data_{nullptr};
  std::atomic<int32_t> width_{1};
  std::atomic<int32_t> parts_{1};
  std::atomic<int32_t> leader_{0};             // the thread that opened it
  std::atomic<int32_t> leader_processor_{-1};  // where that thread ran then
  int32_t workers_ = 0;
  Team* next_ = nullptr;  // in the list of idle teams
  // The region's number, and in the low bits how many parts nobody has taken yet.
  alignas(64) std::atomic<uint64_t> open_{0};
  alignas(64) Signal begin_;
  alignas(64) std::atomic<int32_t> done_{0};
  Signal end_;
  alignas(64) Signal barrier_;
  std::atomic<int32_t> arrived_{0};
};

}  // namespace tenon::provider::cpu
