// Trace: writes the file of TENON_TRACE=file.json in Chrome's trace-event format (chrome://tracing, Perfetto). It shows
// submissions, waits, launches, retirements, copies and allocations, with a track per thread and per stream. On devices
// that measure it (event_elapsed), it also shows the run time of instructions, with a track per stream. While the trace
// is off (process::attention lacks process::kTrace), it costs its callers one relaxed load.
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/export.h"
#include "core/device/process.h"
#include "primitives/status/status.h"

namespace tenon {

inline bool tracing() { return (process::attention.load(std::memory_order_relaxed) & process::kTrace) != 0; }

// The current time on the trace's clock, in nanoseconds.
uint64_t trace_now();

// A span on the calling thread's track. `name` and `category` are copied.
void trace_thread_span(std::string_view name, std::string_view category, uint64_t begin_ns, uint64_t end_ns,
                       std::string_view detail);
// A span on the track of stream `index` of `device`: from its launch to its retirement.
void trace_stream_span(std::string_view name, const DeviceState* device, uint32_t index, uint64_t begin_ns,
                       uint64_t end_ns, uint64_t number);

// Like trace_stream_span, on a separate track: when the device ran the work, by the device's clock. Streams that were
// made before the trace began have no such track.
void trace_device_span(std::string_view name, const DeviceState* device, uint32_t index, uint64_t begin_ns,
                       uint64_t end_ns, uint64_t number);

// One entry of a trace. Times are on the trace's clock.
struct TraceSpan {
  std::string name, category, detail;
  uint64_t begin = 0, end = 0;
  uint32_t track = 0;
};

// trace_begin begins a trace to `path`; trace_end ends it and writes the file, if there is a path. vm::attach, the exit
// hook, tools and tests call them. trace_spans returns the spans so far, in the order in which they ended.
TENON_API void trace_begin(std::string path);
TENON_API Status trace_end();
TENON_API std::vector<TraceSpan> trace_spans();

// A span on the calling thread's track for the life of the scope, if a trace is on.
class TraceScope {
 public:
  // The three arguments must outlive the scope. `where` is the device's spelling.
  TraceScope(std::string_view name, std::string_view category, const std::string& where) {
    if (tracing()) [[unlikely]]
      begin(name, category, where);
  }
  TraceScope(std::string_view name, std::string_view category, const DeviceState* device)
      : TraceScope(name, category, device->opened->spelling) {}
  ~TraceScope() {
    if (begin_ != 0) [[unlikely]]
      end();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  void begin(std::string_view name, std::string_view category, std::string_view where);
  void end();

  uint64_t begin_ = 0;
  std::string_view name_;
  std::string_view category_;
  std::string_view where_;
};

}  // namespace tenon
