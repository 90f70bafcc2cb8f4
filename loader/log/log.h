// The log: leveled, by topic, to stderr or to a sink of the application. A topic that is off costs one relaxed load.
//
//   if (log_enabled(LogTopic::load, LogLevel::debug)) log(LogTopic::load, LogLevel::debug, "found " + path);
//
// Never log an error that is also returned.
//
// Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so

namespace tenon::loader {

enum class LogTopic : uint8_t {
#define TENON_LOG_TOPIC(name, about) name,
#include "loader/log/topics.def"
#undef TENON_LOG_TOPIC
};

enum class LogLevel : uint8_t {
  off = 0,
  error = EP_LOG_ERROR,
  warning = EP_LOG_WARNING,
  info = EP_LOG_INFO,
  debug = EP_LOG_DEBUG,
};

// Four bits per topic: the highest level that is logged. Until the settings are read, warnings of all topics are
// logged.
inline constinit std::atomic<uint64_t> log_levels{UINT64_C(0x2222222222222222)};

inline bool log_enabled(LogTopic topic, LogLevel level) {
  const uint64_t levels = log_levels.load(std::memory_order_relaxed);
  return ((levels >> (4 * static_cast<unsigned>(topic))) & 15) >= static_cast<uint64_t>(level);
}

// Sends `message` to the sink if its level is enabled. The message has no newline at its end; further lines may hold
// context.
void log(LogTopic topic, LogLevel level, std::string_view message);

std::string_view log_level_name(LogLevel level);
std::string_view log_topic_name(LogTopic topic);
// The topic called `name`; LogTopic::provider if there is none of that name.
LogTopic log_topic_from_name(std::string_view name);

// Called from any thread, also concurrently. It must not call back into Tenon. Its exceptions are ignored.
using LogSink = std::function<void(LogLevel level, std::string_view topic, std::string_view message)>;

// Replaces stderr; an empty sink restores it. A message in progress may still reach the old sink.
void set_log_sink(LogSink sink);

// The value of TENON_LOG as `log_levels`: "load,vm=info", "debug", "all=error,load", "off".
// Errors: an element that is neither a topic nor a level.
Result<uint64_t> parse_log_levels(std::string_view text);

}  // namespace tenon::loader

#pragma GCC visibility pop
