// The host's reaction to an error of an event function: a log line, then another way to wait, and only then a loss.
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/vm/engine.h"
#include "loader/loader.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

class EventErrors : public Machines {
 protected:
  EventErrors() {
    loader::set_log_sink([this](loader::LogLevel level, std::string_view topic, std::string_view message) {
      std::lock_guard lock(mutex_);
      if (topic == "vm" && level == loader::LogLevel::warning) lines_.emplace_back(message);
    });
  }
  ~EventErrors() override { loader::set_log_sink({}); }

  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  // The lines that contain all of `parts`.
  size_t lines_with(std::initializer_list<std::string_view> parts) {
    size_t count = 0;
    for (const std::string& line : lines()) {
      bool all = true;
      for (std::string_view part : parts) all = all && line.find(part) != std::string::npos;
      count += all ? 1 : 0;
    }
    return count;
  }
  // Twenty launches, alternating between two streams, each of which reads the previous result. Returns the first word.
  static Result<uint32_t> chain(AsyncMachine& on) {
    StorageHandle a = std::move(on.allocate(0, kWords)).value();
    TENON_RETURN_IF_ERROR(on.upload(a.get(), 0, std::vector<uint32_t>(kWords, 3)));
    for (int i = 0; i < 20; ++i) {
      TENON_RETURN_IF_ERROR(
          on.mix(0, 2 * (i % 2), {a.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixRuns, false));
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<uint32_t> words, on.download(a.get()));
    return words[0];
  }
  static uint32_t wanted() {
    uint32_t value = 3;
    for (int i = 0; i < 20; ++i) value = 32 * value + 1;
    return value;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(EventErrors, AQueryThatAlwaysFailsIsLoggedOncePerStreamInTheDevicesWords) {
  fakes::async_control().delay_us = 200;
  for (const ep_status answer : {EP_STATUS_INTERNAL, EP_STATUS_INVALID_ARGUMENT}) {
    fakes::async_control().query_answer = answer;
    for (int round = 0; round < 3; ++round) {
      const Result<uint32_t> word = chain(machine);
      ASSERT_TRUE(word.ok()) << word.status().message();
      EXPECT_EQ(word.value(), wanted()) << "the host waits for the streams instead";
    }
  }
  EXPECT_GE(lines().size(), 1u);
  for (int stream = 0; stream < 4; ++stream) {
    const std::string name = fmt::format("on stream {};", stream);
    EXPECT_LE(lines_with({name}), 1u) << "logged once per stream";
  }
  for (const std::string& line : lines()) {
    for (const char* part : {"the counter of the queue cannot be read.", "asking whether an event has fired on async:0",
                             "Tenon waits for the whole stream instead", "S08"}) {
      EXPECT_NE(line.find(part), std::string::npos) << line;
    }
  }
}

TEST_F(EventErrors, AHostWaitThatAlwaysFailsIsLoggedOncePerStreamAndTheHostAsksInstead) {
  fakes::async_control().delay_us = 200;
  fakes::async_control().host_wait_answer = EP_STATUS_INTERNAL;
  for (int round = 0; round < 10 && lines().empty(); ++round) {
    const Result<uint32_t> word = chain(machine);
    ASSERT_TRUE(word.ok()) << word.status().message();
    EXPECT_EQ(word.value(), wanted());
  }
  EXPECT_GE(lines_with({"the interrupt of the queue is not there.", "waiting on the host for an event on async:0",
                        "Tenon asks at intervals instead"}),
            1u);
  EXPECT_LE(lines().size(), 4u);
}

// A launch on a device that the host will consider lost. The fake is not lost, so its work ends before the test does.
class LostByEvents : public EventErrors {
 protected:
  Status lose(const char* provider) {
    loader::register_provider(provider, fakes::async_query);
    AsyncMachine on(provider);
    TENON_RETURN_IF_ERROR(on.open());
    StorageHandle a = std::move(on.allocate(0, kWords)).value();
    TENON_RETURN_IF_ERROR(on.upload(a.get(), 0, std::vector<uint32_t>(kWords, 3)));
    TENON_RETURN_IF_ERROR(vm::synchronize(on.device(0)));
    fakes::async_control().hold = true;
    break_events();
    TENON_RETURN_IF_ERROR(on.mix(0, 0, {a.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixRuns, false));
    const Status lost = vm::synchronize(on.device(0));
    fakes::async_control().reset();
    for (uint16_t i = 0; i < on.device(0)->queue->stream_count(); ++i) {
      on.device(0)->ops.stream_synchronize(on.device(0)->queue->stream(i).handle, nullptr);
    }
    on.settle();
    return lost;
  }

  std::function<void()> break_events;
};

// The device itself does not say that it is lost. Both of its sentences are in the error.
TEST_F(LostByEvents, IfTheWaitForTheStreamFailsTooTheWorkFailsWithBothSentences) {
  break_events = [] {
    fakes::async_control().query_answer = EP_STATUS_INTERNAL;
    fakes::async_control().synchronize_answer = EP_STATUS_INTERNAL;
  };
  const Status lost = lose("unwell");
  EXPECT_EQ(lost.code(), Code::device_lost);
  for (const char* part : {"the queue does not answer.", "while waiting for a stream on unwell:0",
                           "the counter of the queue cannot be read.", "asking whether an event has fired"}) {
    EXPECT_NE(lost.message().find(part), std::string::npos) << lost.message();
  }
}

TEST_F(LostByEvents, AHostWaitThatSaysTheDeviceIsLostLosesIt) {
  break_events = [] { fakes::async_control().host_wait_answer = EP_STATUS_DEVICE_LOST; };
  const Status lost = lose("gone");
  EXPECT_EQ(lost.code(), Code::device_lost);
  EXPECT_NE(lost.message().find("the interrupt of the queue is not there."), std::string::npos) << lost.message();
  EXPECT_EQ(lines().size(), 0u) << "the error is returned, so it is not logged";
}

}  // namespace
}  // namespace tenon::testing
