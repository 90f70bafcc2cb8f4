// WideLease: who may open a parallel region now.
//
// libgomp keeps a team of threads per calling thread, so several callers with a region each would fight for the same
// processors. One lease per process says who is wide; it stays with its last holder until that has been idle for a
// millisecond, because handing it over costs 36 to 172 microseconds of waking. It is worth taking for work above 50
// microseconds, or as much of it in pieces within a millisecond; while it is warm its holder widens from 3
// microseconds. Everybody else runs narrow, on its own thread.
//
// Where other programs use the processors too, a region waits for its last thread until that is scheduled: milliseconds
// for work of microseconds. A region that took far longer than its work takes on one thread is followed by a pause
// without regions, of 10 milliseconds, and up to 640 as it happens again and again.
//
// The lease is the one piece of state outside a device, since libgomp's own state is the process's.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

class WideLease {
 public:
  // Asks for `limit` threads for work of about `nanoseconds`. Never waits.
  WideLease(int32_t limit, int64_t nanoseconds);
  ~WideLease();
  WideLease(const WideLease&) = delete;
  WideLease& operator=(const WideLease&) = delete;

  // Threads to use: the limit, or 1.
  int32_t width() const { return width_; }

 private:
  int64_t nanoseconds_;
  int32_t width_ = 1;
};

// Calls body(context, thread, width) for every thread below `width`, on that many threads, the caller being the first.
void run_on_threads(int32_t width, void (*body)(void* context, int32_t thread, int32_t width), void* context);

// Runs body(thread, width) on as many threads as the lease gives.
template <class Body>
void parallel(int32_t limit, int64_t nanoseconds, Body&& body) {
  const WideLease lease(limit, nanoseconds);
  if (lease.width() == 1) return body(0, 1);
  run_on_threads(
      lease.width(),
      [](void* context, int32_t thread, int32_t width) { (*static_cast<Body*>(context))(thread, width); }, &body);
}

// Within its scope OpenMP regions of this thread (oneDNN's) have `width` threads.
class OpenMpWidth {
 public:
  explicit OpenMpWidth(int32_t width);
  ~OpenMpWidth();
  OpenMpWidth(const OpenMpWidth&) = delete;
  OpenMpWidth& operator=(const OpenMpWidth&) = delete;

 private:
  int32_t before_;
  int32_t width_;
};

}  // namespace tenon::provider::cpu
