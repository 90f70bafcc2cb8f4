// Team: threads that run one function together, again and again.
//
// A region is one run: the caller and `width` - 1 workers call the function, each once, at the same time, so that the
// function may contain barriers. Workers live until the process ends. A process has as many teams as threads ever
// opened regions at once, mostly one (see lease.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/cpu/threads/signal.h"

namespace tenon::provider::cpu {

class Team {
 public:
  using Body = void (*)(void*);

  // Runs body(data) on this thread and on width - 1 others, on fewer if the system gives no more threads. Takes an idle
  // team, or makes one.
  static void run(Body body, void* data, int32_t width);

  // Of the region that this thread is in; outside of regions 0 and 1.
  static int32_t number();
  static int32_t width();
  // True within a region of several threads, and within what such a region calls.
  static bool is_inside();
  // Waits until all threads of the region have come here.
  static void barrier();

 private:
  struct Place;  // of a thread: its team and its number in it

  void lead(Body body, void* data, int32_t width);
  void hire(int32_t width);
  void work(int32_t number, uint32_t seen);

  static Team* take();
  static void give_back(Team* team);
  static thread_local Place place;

  Body body_ = nullptr;
  void* data_ = nullptr;
  int32_t width_ = 1;
  int32_t workers_ = 0;
  Team* next_ = nullptr;  // in the list of idle teams
  alignas(64) Signal begin_;
  alignas(64) Signal end_;
  std::atomic<int32_t> running_{0};
  alignas(64) Signal barrier_;
  std::atomic<int32_t> arrived_{0};
};

}  // namespace tenon::provider::cpu
