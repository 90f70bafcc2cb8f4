// If the device reports times of instructions, the trace contains them. While the trace is off they cost nothing.
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/device/trace.h"
#include "loader/log/log.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

struct Span {
  std::string name, track;
  double begin = 0, end = 0;  // in microseconds
};

class DeviceTimes : public ::testing::Test {
 protected:
  DeviceTimes() {
    fakes::async_control().reset();
    loader::set_log_sink([this](loader::LogLevel level, std::string_view topic, std::string_view message) {
      std::lock_guard lock(mutex_);
      if (topic == "vm" && level == loader::LogLevel::warning) lines_.emplace_back(message);
    });
  }
  ~DeviceTimes() override {
    loader::set_log_sink({});
    fakes::async_control().reset();
  }

  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

  // Opens the fake, registered under a new name, runs three launches on stream 0, and returns the result of the last.
  static uint32_t run_three(const std::string& provider) {
    loader::register_provider(provider, fakes::async_query);
    AsyncMachine machine(provider);
    EXPECT_TRUE(machine.open().ok());
    StorageHandle a = std::move(machine.allocate(0, kWords)).value();
    EXPECT_TRUE(machine.upload(a.get(), 0, std::vector<uint32_t>(kWords, 3)).ok());
    for (int i = 0; i < 3; ++i) {
      const Status status =
          machine.mix(0, 0, {a.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixRuns, false);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    const auto words = machine.download(a.get());
    EXPECT_TRUE(words.ok());
    machine.settle();
    return words.value()[0];
  }

  // The spans of the trace in `path` whose category is "device".
  static std::vector<Span> device_spans(const std::string& path) {
    std::ifstream file(path);
    const auto trace = nlohmann::json::parse(file);
    std::map<int, std::string> tracks;
    std::vector<Span> spans;
    for (const auto& event : trace["traceEvents"]) {
      if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    }
    for (const auto& event : trace["traceEvents"]) {
      if (!event.contains("cat") || event["cat"] != "device") continue;
      const double begin = event["ts"];
      spans.push_back({event["name"], tracks[event["tid"]], begin, begin + event["dur"].get<double>()});
    }
    return spans;
  }

  static constexpr uint32_t kWanted = 32 * (32 * (32 * 3 + 1) + 1) + 1;
  ScratchFolder folder_;

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(DeviceTimes, AreInTheTraceForEachInstructionOfTheDevice) {
  const std::string path = folder_.path() + "/trace.json";
  fakes::async_control().delay_us = 2000;
  trace_begin(path);
  const double begin = static_cast<double>(trace_now()) / 1000;
  EXPECT_EQ(run_three("timed"), kWanted);
  ASSERT_TRUE(trace_end().ok());
  std::map<std::string, int> seen;
  double last = 0;
  for (const Span& span : device_spans(path)) {
    ++seen[span.name];
    EXPECT_NE(span.track.find("device time"), std::string::npos) << span.track;
    EXPECT_GE(span.begin, begin);
    EXPECT_LE(span.begin, span.end);
    if (span.name != "mix") continue;
    EXPECT_GE(span.begin, last) << "instructions of one stream run one after the other";
    last = span.end;
  }
  EXPECT_EQ(seen["mix"], 3);
  EXPECT_EQ(seen["upload"], 1);
  EXPECT_EQ(seen["download"], 1);
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(DeviceTimes, CostNoEventWithoutATrace) {
  EXPECT_EQ(run_three("untimed"), kWanted);
  EXPECT_EQ(fakes::async_control().timed_records, 0u);
}

TEST_F(DeviceTimes, EndWithOneLineWhereTheDeviceFailsToTellThem) {
  const std::string path = folder_.path() + "/trace.json";
  fakes::async_control().elapsed_answer = EP_STATUS_INTERNAL;
  trace_begin(path);
  EXPECT_EQ(run_three("clockless"), kWanted) << "the results do not depend on the clock";
  ASSERT_TRUE(trace_end().ok());
  EXPECT_EQ(device_spans(path).size(), 0u);
  const std::vector<std::string> told = lines();
  ASSERT_GE(told.size(), 1u);
  EXPECT_LE(told.size(), 3u) << "one for each stream";
  EXPECT_NE(told[0].find("the clock of the queue cannot be read"), std::string::npos) << told[0];
}

}  // namespace
}  // namespace tenon::testing
