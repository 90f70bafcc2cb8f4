#include "loader/log/log.h"

#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr std::string_view topic_names[] = {
#define TENON_LOG_TOPIC(name, about) #name,
#include "loader/log/topics.def"
#undef TENON_LOG_TOPIC
};

constexpr std::string_view level_names[] = {"off", "error", "warning", "info", "debug"};

struct SinkHolder {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;
};

SinkHolder& holder() {
  static auto* instance = new SinkHolder;
  return *instance;
}

void write_to_stderr(LogLevel level, std::string_view topic, std::string_view message) {
  std::string line = "tenon ";
  line.append(log_level_name(level)).append(" [").append(topic).append("] ").append(message).append("\n");
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

std::optional<uint64_t> level_from_name(std::string_view name) {
  for (uint64_t level = 0; level < std::size(level_names); ++level) {
    if (level_names[level] == name) return level;
  }
  return std::nullopt;
}

constexpr uint64_t all_topics = UINT64_C(0x1111111111111111);

Status apply_element(std::string_view element, uint64_t& levels) {
  const size_t equals = element.find('=');
  const std::string_view subject = element.substr(0, equals);
  uint64_t level = EP_LOG_DEBUG;
  if (equals != std::string_view::npos) {
    const auto given = level_from_name(element.substr(equals + 1));
    if (!given) {
      return Status(Code::invalid_argument,
                    fmt::format("'{}' is not a log level; the levels are off, error, warning, info and debug",
                                element.substr(equals + 1)));
    }
    level = *given;
  } else if (const auto bare = level_from_name(subject)) {
    levels = *bare * all_topics;
    return {};
  }
  if (subject == "all") {
    levels = level * all_topics;
    return {};
  }
  for (unsigned topic = 0; topic < std::size(topic_names); ++topic) {
    if (topic_names[topic] != subject) continue;
    levels = (levels & ~(UINT64_C(15) << (4 * topic))) | (level << (4 * topic));
    return {};
  }
  std::string known = "all";
  for (std::string_view name : topic_names) known.append(", ").append(name);
  return Status(Code::invalid_argument, fmt::format("'{}' is not a log topic; the topics are {}", subject, known));
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  const auto index = static_cast<size_t>(level);
  return index < std::size(level_names) ? level_names[index] : "debug";
}

std::string_view log_topic_name(LogTopic topic) { return topic_names[static_cast<size_t>(topic)]; }

LogTopic log_topic_from_name(std::string_view name) {
  for (size_t topic = 0; topic < std::size(topic_names); ++topic) {
    if (topic_names[topic] == name) return static_cast<LogTopic>(topic);
  }
  return LogTopic::provider;
}

void log(LogTopic topic, LogLevel level, std::string_view message) {
  if (!log_enabled(topic, level)) return;
  std::shared_ptr<const LogSink> sink;
  {
    std::lock_guard lock(holder().mutex);
    sink = holder().sink;
  }
  if (!sink) return write_to_stderr(level, log_topic_name(topic), message);
  try {
    (*sink)(level, log_topic_name(topic), message);
  } catch (...) {
    return;
  }
}

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  std::lock_guard lock(holder().mutex);
  holder().sink.swap(next);
}

Result<uint64_t> parse_log_levels(std::string_view text) {
  uint64_t levels = EP_LOG_WARNING * all_topics;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view element = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (!element.empty()) TENON_RETURN_IF_ERROR(apply_element(element, levels));
  }
  return levels;
}

}  // namespace tenon::loader
