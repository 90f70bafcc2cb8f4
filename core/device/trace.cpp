#include "core/device/trace.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

#include "primitives/text/format.h"

namespace tenon {
namespace {

// One list under one lock. The lock is slow, but the trace shows its own cost.
struct Trace {
  std::mutex mutex;
  std::string path;
  std::vector<TraceSpan> spans;
  std::map<std::string, uint32_t> tracks;
  uint32_t threads = 0;

  uint32_t track(const std::string& name) {
    return tracks.try_emplace(name, static_cast<uint32_t>(tracks.size() + 1)).first->second;
  }
};

Trace& trace() {
  static auto* one = new Trace;
  return *one;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string microseconds(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string line(const TraceSpan& span) {
  return fmt::format(
      R"({{"ph":"X","pid":1,"tid":{},"name":"{}","cat":"{}","ts":{},"dur":{},"args":{{"detail":"{}"}}}})", span.track,
      escaped(span.name), escaped(span.category), microseconds(span.begin),
      microseconds(span.end - std::min(span.begin, span.end)), escaped(span.detail));
}

}  // namespace

uint64_t trace_now() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

void trace_thread_span(std::string_view name, std::string_view category, uint64_t begin_ns, uint64_t end_ns,
                       std::string_view detail) {
  thread_local uint32_t number = 0;
  Trace& all = trace();
  std::lock_guard lock(all.mutex);
  if (number == 0) number = ++all.threads;
  all.spans.push_back({std::string(name), std::string(category), std::string(detail), begin_ns, end_ns,
                       all.track(fmt::format("thread {}", number))});
}

void trace_stream_span(std::string_view name, const DeviceState* device, uint32_t index, uint64_t begin_ns,
                       uint64_t end_ns, uint64_t number) {
  Trace& all = trace();
  std::lock_guard lock(all.mutex);
  all.spans.push_back({std::string(name), "stream", fmt::format("instruction {}", number), begin_ns, end_ns,
                       all.track(fmt::format("{} stream {}", device->opened->spelling, index))});
}

void trace_device_span(std::string_view name, const DeviceState* device, uint32_t index, uint64_t begin_ns,
                       uint64_t end_ns, uint64_t number) {
  Trace& all = trace();
  std::lock_guard lock(all.mutex);
  all.spans.push_back({std::string(name), "device", fmt::format("instruction {}", number), begin_ns, end_ns,
                       all.track(fmt::format("{} stream {}, device time", device->opened->spelling, index))});
}

void trace_begin(std::string path) {
  Trace& all = trace();
  std::lock_guard lock(all.mutex);
  all.path = std::move(path);
  all.spans.clear();
  process::attention.fetch_or(process::kTrace);
}

Status trace_end() {
  process::attention.fetch_and(~uint32_t{process::kTrace});
  Trace& all = trace();
  std::lock_guard lock(all.mutex);
  if (all.path.empty()) return Status();
  const std::string path = std::exchange(all.path, {});
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return Status(Code::invalid_argument,
                  fmt::format("The trace cannot be written: {} cannot be opened for writing.", path));
  }
  std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
  std::fputs("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"tenon\"}}", file);
  for (const auto& [name, track] : all.tracks) {
    std::fprintf(file, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                 track, escaped(name).c_str());
  }
  for (const TraceSpan& span : all.spans) std::fprintf(file, ",\n%s", line(span).c_str());
  std::fputs("\n]}\n", file);
  all.spans.clear();
  if (std::fclose(file) == 0) return Status();
  return Status(Code::internal, fmt::format("The trace cannot be written: writing {} failed.", path));
}

std::vector<TraceSpan> trace_spans() {
  std::lock_guard lock(trace().mutex);
  return trace().spans;
}

void TraceScope::begin(std::string_view name, std::string_view category, std::string_view where) {
  name_ = name;
  category_ = category;
  where_ = where;
  begin_ = trace_now();
}

void TraceScope::end() { trace_thread_span(name_, category_, begin_, trace_now(), where_); }

}  // namespace tenon
