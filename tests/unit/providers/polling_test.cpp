// A wait on a device that can only be polled, with a clock of the test.
#include "sdk/provider/polling.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon::provider {
namespace {

// A clock that advances by 10 microseconds per poll, and by the time that the wait sleeps.
struct TestClock {
  struct State {
    uint64_t time = 1'000'000;
    uint64_t yields = 0;
    std::vector<uint64_t> sleeps;
  };
  State* state;
  uint64_t now() const { return state->time += 10'000; }
  void yield() const { ++state->yields; }
  void sleep(uint64_t ns) const {
    state->sleeps.push_back(ns);
    state->time += ns;
  }
};

// Waits for an event that fires `comes_ns` after the start.
ep_status wait_for(uint64_t comes_ns, uint64_t timeout_ns, TestClock::State* state, uint64_t* questions = nullptr,
                   Pace pace = sparing_pace) {
  const uint64_t start = state->time;
  uint64_t asked = 0;
  const ep_status status = poll_until(
      timeout_ns,
      [&] {
        ++asked;
        return state->time - start >= comes_ns ? EP_STATUS_OK : EP_STATUS_BUSY;
      },
      pace, TestClock{state});
  if (questions != nullptr) *questions = asked;
  return status;
}

TEST(Polling, AnEventThatHasComeIsSeenWithoutALimit) {
  TestClock::State state;
  uint64_t questions = 0;
  EXPECT_EQ(wait_for(0, 0, &state, &questions), EP_STATUS_OK);
  EXPECT_EQ(questions, 1u);
  EXPECT_EQ(state.yields + state.sleeps.size(), 0u);
}

TEST(Polling, ALimitOfZeroAsksOnce) {
  TestClock::State state;
  uint64_t questions = 0;
  EXPECT_EQ(wait_for(1'000'000, 0, &state, &questions), EP_STATUS_TIMEOUT);
  EXPECT_EQ(questions, 1u);
}

TEST(Polling, AShortWaitNeverSleeps) {
  TestClock::State state;
  EXPECT_EQ(wait_for(40'000, UINT64_MAX, &state), EP_STATUS_OK);
  EXPECT_GT(state.yields, 0u);
  EXPECT_TRUE(state.sleeps.empty());
}

TEST(Polling, SleepsGrowWithTheWaitAndStayBelowAMillisecond) {
  TestClock::State state;
  EXPECT_EQ(wait_for(500'000'000, UINT64_MAX, &state), EP_STATUS_OK);
  EXPECT_EQ(state.sleeps.front(), 20'000u);
  EXPECT_EQ(state.sleeps.back(), 1'000'000u);
  EXPECT_LT(state.sleeps.size(), 800u);
}

TEST(Polling, AnEagerWaitIsLateByLittle) {
  TestClock::State state;
  EXPECT_EQ(wait_for(19'900'000, UINT64_MAX, &state, nullptr, eager_pace), EP_STATUS_OK);
  EXPECT_TRUE(state.sleeps.empty());
  for (const uint64_t comes_ns : {21'000'000u, 50'000'000u, 120'000'000u}) {
    TestClock::State later;
    const uint64_t start = later.time;
    EXPECT_EQ(wait_for(comes_ns, UINT64_MAX, &later, nullptr, eager_pace), EP_STATUS_OK);
    EXPECT_FALSE(later.sleeps.empty());
    EXPECT_LE(later.time - start, comes_ns + comes_ns / 128 + 20'000);
  }
}

TEST(Polling, NeverSleepsBeyondTheLimitAndAsksOnceMoreThere) {
  TestClock::State state;
  const uint64_t start = state.time;
  uint64_t questions = 0;
  EXPECT_EQ(wait_for(UINT64_MAX, 3'000'000, &state, &questions), EP_STATUS_TIMEOUT);
  EXPECT_GE(state.time - start, 3'000'000u);
  EXPECT_LT(state.time - start, 3'050'000u);
  EXPECT_EQ(questions, state.yields + state.sleeps.size() + 1);
}

TEST(Polling, AnErrorEndsTheWait) {
  TestClock::State state;
  EXPECT_EQ(poll_until(
                UINT64_MAX, [] { return EP_STATUS_DEVICE_LOST; }, sparing_pace, TestClock{&state}),
            EP_STATUS_DEVICE_LOST);
}

}  // namespace
}  // namespace tenon::provider
