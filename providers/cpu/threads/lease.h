// WideLease: the right to open a parallel region.
//
// If several callers opened regions at once, their threads would compete for the same processors. So a process has one
// lease, and only its holder uses several threads. The last holder keeps the lease until it has been idle for a
// millisecond, because waking threads for a new holder costs 36 to 172 microseconds. A thread takes the lease for at
// least 50 microseconds of work, in one piece or in several within a millisecond. A thread that holds the lease already
// uses several threads from 3 microseconds of work on. Every other thread runs its work alone.
//
// A caller is a thread that has work for several threads, whether it gets the lease or not. Each other caller of the
// last millisecond reduces the width by one thread, because it keeps a processor busy itself.
//
// Other programs may use the processors too. A region then waits until the system schedules its last thread:
// milliseconds for microseconds of work. If a region took far longer than its work takes on one thread, no region is
// opened for three times the excess; each further such region doubles the factor, up to 640 milliseconds.
//
// The lease, the teams (team.h) and the measurements of signal.h are the only state outside a device, because
// processors belong to the process.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

class WideLease {
 public:
  // Requests `limit` threads for about `nanoseconds` of work. Never waits.
  WideLease(int32_t limit, int64_t nanoseconds);
  ~WideLease();
  WideLease(const WideLease&) = delete;
  WideLease& operator=(const WideLease&) = delete;

  // The number of threads to use: 1, or the limit minus the number of other callers.
  int32_t width() const { return width_; }

 private:
  int64_t nanoseconds_;
  int32_t width_ = 1;
  bool counts_;  // true: this object counts as a caller
};

// Calls body(context, part, parts) for parts that make up about `nanoseconds` of work, on `width` threads. Of long work
// there are more parts than threads, so that a thread which comes late is left with less. They differ in length:
// body(1, 4) and body(4, 8) to body(7, 8) may be calls of one region. Results must not depend on how the work is cut,
// or on who runs which part. Long work is several regions, one after the other, and between them it stops if the host
// wants that (stop.h).
void run_parts(int32_t width, int64_t nanoseconds, void (*body)(const void* context, int32_t part, int32_t parts),
               const void* context);

// Calls body(context, part, parts) for one part per thread.
void run_together(int32_t width, void (*body)(const void* context, int32_t part, int32_t parts), const void* context);

// For code that runs a part: a number below the limit that no other thread of the region has at the same time.
int32_t runner();

template <class Body>
void run_parts(int32_t width, int64_t nanoseconds, const Body& body) {
  run_parts(
      width, nanoseconds,
      [](const void* context, int32_t part, int32_t parts) { (*static_cast<const Body*>(context))(part, parts); },
      &body);
}

// Work of at least this many nanoseconds may check whether the host wants it to stop.
constexpr int64_t worth_stopping = 100'000;

// Runs body(part, parts) for every part, on as many threads as the lease gives.
template <class Body>
void parallel(int32_t limit, int64_t nanoseconds, const Body& body) {
  const WideLease lease(limit, nanoseconds);
  if (lease.width() == 1 && nanoseconds < worth_stopping) return body(0, 1);
  run_parts(lease.width(), nanoseconds, body);
}

// Calls body(part, parts) once on each thread that the lease grants. All of them must call wait_for_others equally
// often; it returns when all have called it.
template <class Body>
void together(int32_t limit, int64_t nanoseconds, const Body& body) {
  const WideLease lease(limit, nanoseconds);
  if (lease.width() == 1) return body(0, 1);
  run_together(
      lease.width(),
      [](const void* context, int32_t part, int32_t parts) { (*static_cast<const Body*>(context))(part, parts); },
      &body);
}
void wait_for_others();

// During its lifetime, OpenMP regions that this thread opens (by oneDNN) have `width` threads.
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
