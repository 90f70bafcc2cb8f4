// Team: threads that run the parts of one function together, region after region.
//
// A region is one run of all parts. The caller runs part 0; the caller and the `width` - 1 workers take the other parts
// as they become free. A region ends when all parts are done. So it waits for a thread that another program displaces
// only if that thread has taken a part.
//
// A function may contain barriers if there are as many parts as threads. Then there is a free thread for every part
// that has not begun, so waiting for that part is safe. A thread that has finished its part without waiting for another
// part may run that other part as well.
//
// A worker avoids the processor of the caller. Workers live until the process ends. A process has as many teams as
// threads have opened regions at the same time, usually one (see lease.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/cpu/threads/signal.h"

namespace tenon::provider::cpu {

class Team {
 public:
  using Body = void (*)(void*);

  // Runs body(data) for every part on this thread and up to width - 1 others, or fewer if the system provides no more
  // threads. There are `parts` parts, or one per thread if `parts` is 0. Wakes sleeping workers only if `wakes`. Takes
  // an idle team or creates one. Within a region, or with a width of 1, there is one part.
  static void run(Body body, void* data, int32_t width, int32_t parts = 0, bool wakes = true);

  // The part that this thread runs, and the number of parts; 0 and 1 outside regions.
  static int32_t part();
  static int32_t parts();
  // A number below the region's width that no other thread of the region has.
  static int32_t runner();
  // True within a region of several threads, including functions that it calls.
  static bool is_inside();
  // True within a region of one thread or of several.
  static bool is_in_region();
  // Waits until all parts of the region have come here.
  static void barrier();

 private:
  struct Place;  // the state of a thread: its team, and the part that it runs

  void lead(Body body, void* data, int32_t width, int32_t parts, bool wakes);
  void hire(int32_t width);
  void work(int32_t runner, uint32_t seen);
  bool run_part(int32_t runner);

  static Team* take();
  static void give_back(Team* team);
  static thread_local Place place;

  // The current region. A worker reads them before it takes a part. If they are outdated by then, taking the part
  // fails.
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> data_{nullptr};
  std::atomic<int32_t> width_{1};
  std::atomic<int32_t> parts_{1};
  std::atomic<int32_t> leader_{0};             // the thread that opened the region
  std::atomic<int32_t> leader_processor_{-1};  // the processor of that thread at that time
  int32_t workers_ = 0;
  Team* next_ = nullptr;  // in the list of idle teams
  // The number of the region; the low bits count the parts that are not taken yet.
  alignas(64) std::atomic<uint64_t> open_{0};
  alignas(64) Signal begin_;
  alignas(64) std::atomic<int32_t> done_{0};
  Signal end_;
  alignas(64) Signal barrier_;
  std::atomic<int32_t> arrived_{0};
};

}  // namespace tenon::provider::cpu
