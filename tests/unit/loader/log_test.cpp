#include "loader/log/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override {
    set_log_sink({});
    log_levels = before_;
  }
  static void configure(const char* text) { log_levels = parse_log_levels(text).value(); }

 private:
  uint64_t before_ = log_levels;
};

TEST_F(Log, KeepsWarningsUnlessTold) {
  configure("");
  for (LogTopic topic : {LogTopic::load, LogTopic::vm, LogTopic::provider}) {
    EXPECT_TRUE(log_enabled(topic, LogLevel::error));
    EXPECT_TRUE(log_enabled(topic, LogLevel::warning));
    EXPECT_FALSE(log_enabled(topic, LogLevel::info));
  }
}

TEST_F(Log, TopicsHaveLevelsOfTheirOwn) {
  configure("load,vm=info,all=error,memory=off,dispatch");
  EXPECT_FALSE(log_enabled(LogTopic::load, LogLevel::warning)) << "what comes later overrides";
  configure("all=error,load,vm=info,memory=off");
  EXPECT_TRUE(log_enabled(LogTopic::load, LogLevel::debug));
  EXPECT_TRUE(log_enabled(LogTopic::vm, LogLevel::info));
  EXPECT_FALSE(log_enabled(LogTopic::vm, LogLevel::debug));
  EXPECT_FALSE(log_enabled(LogTopic::memory, LogLevel::error));
  EXPECT_FALSE(log_enabled(LogTopic::compile, LogLevel::warning));
  configure("debug");
  EXPECT_TRUE(log_enabled(LogTopic::compile, LogLevel::debug));
  configure("off");
  EXPECT_FALSE(log_enabled(LogTopic::load, LogLevel::error));
}

TEST_F(Log, RefusesUnknownTopicsAndLevels) {
  EXPECT_EQ(parse_log_levels("loud").status().message(),
            "'loud' is not a log topic; the topics are all, load, dispatch, vm, memory, compile, validate, provider");
  EXPECT_EQ(parse_log_levels("load=loud").status().message(),
            "'loud' is not a log level; the levels are off, error, warning, info and debug");
}

TEST_F(Log, SinkGetsWhatIsEnabled) {
  configure("vm=info");
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view topic, std::string_view message) {
    lines.push_back(fmt::format("{} {} {}", log_level_name(level), topic, message));
  });
  log(LogTopic::vm, LogLevel::info, "kept");
  log(LogTopic::vm, LogLevel::debug, "dropped");
  log(LogTopic::load, LogLevel::error, "kept too");
  EXPECT_EQ(lines, (std::vector<std::string>{"info vm kept", "error load kept too"}));
}

TEST_F(Log, SinkThatThrowsHurtsNobody) {
  set_log_sink([](LogLevel, std::string_view, std::string_view) { throw std::runtime_error("full"); });
  EXPECT_NO_THROW(log(LogTopic::load, LogLevel::error, "lost"));
}

TEST_F(Log, WithoutASinkLinesGoToStderr) {
  testing::internal::CaptureStderr();
  log(LogTopic::memory, LogLevel::warning, "a block is missing");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tenon warning [memory] a block is missing\n");
}

}  // namespace
}  // namespace tenon::loader
