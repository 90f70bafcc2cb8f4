// The wide lease: one thread of the process at a time may run wide parallel regions, and no thread waits for the lease.
#include "providers/cpu/threads/lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t long_work = 1'000'000;

// Waits until the lease of an earlier test has expired, and the pause after a region that waited for a processor.
void wait_until_idle() {
  const auto idle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (int i = 0; i < 100; ++i) {
    idle();
    int32_t width = 0;
    std::thread([&width] { width = WideLease(2, long_work).width(); }).join();
    if (width == 2) break;
  }
  idle();
}

TEST(WideLease, GivesTheLimitForLongWork) {
  wait_until_idle();
  const WideLease lease(2, long_work);
  EXPECT_EQ(lease.width(), 2);
}

TEST(WideLease, IsNotWorthItForShortWork) {
  wait_until_idle();
  const WideLease lease(2, 1000);
  EXPECT_EQ(lease.width(), 1);
}

TEST(WideLease, NeverExceedsALimitOfOne) {
  const WideLease lease(1, long_work);
  EXPECT_EQ(lease.width(), 1);
}

TEST(WideLease, KeepsItsHolderWideForMediumWork) {
  wait_until_idle();
  int32_t widths[3] = {};
  std::thread([&widths] {
    const int64_t work[] = {10'000, long_work, 10'000};
    for (int i = 0; i < 3; ++i) widths[i] = WideLease(2, work[i]).width();
  }).join();
  EXPECT_EQ(widths[0], 1);
  EXPECT_EQ(widths[1], 2);
  EXPECT_EQ(widths[2], 2);
}

TEST(WideLease, IsEarnedByManyPiecesInARow) {
  wait_until_idle();
  int32_t width = 0;
  std::thread([&width] {
    for (int piece = 0; piece < 1000 && width != 2; ++piece) width = WideLease(2, 10'000).width();
  }).join();
  EXPECT_EQ(width, 2);
}

TEST(WideLease, PausesAfterARegionThatHadToWaitForAProcessor) {
  wait_until_idle();
  {
    const WideLease lease(2, 60'000);
    ASSERT_EQ(lease.width(), 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(WideLease(2, long_work).width(), 1);
  wait_until_idle();
  EXPECT_EQ(WideLease(2, long_work).width(), 2) << "the pause is over";
}

TEST(WideLease, LeavesOthersNarrowWhileHeld) {
  wait_until_idle();
  const WideLease lease(2, long_work);
  ASSERT_EQ(lease.width(), 2);
  int32_t other = 0;
  std::thread([&other] { other = WideLease(2, long_work).width(); }).join();
  EXPECT_EQ(other, 1);
}

TEST(WideLease, LeavesAThreadToEachOtherCaller) {
  wait_until_idle();
  std::atomic<bool> begun{false}, over{false};
  std::thread other([&] {
    const WideLease lease(2, 10'000);
    EXPECT_EQ(lease.width(), 1) << "the work is too short to take the lease, and counts";
    begun = true;
    while (!over) std::this_thread::yield();
  });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(WideLease(2, long_work).width(), 1);
  EXPECT_EQ(WideLease(8, long_work).width(), 7);
  over = true;
  other.join();
  wait_until_idle();
  EXPECT_EQ(WideLease(8, long_work).width(), 8);
}

TEST(WideLease, PassesOnWhenItsHolderIsIdle) {
  wait_until_idle();
  EXPECT_EQ(WideLease(2, long_work).width(), 2);
  wait_until_idle();
  int32_t other = 0;
  std::thread([&other] { other = WideLease(2, long_work).width(); }).join();
  EXPECT_EQ(other, 2);
}

// The thread that held the lease, and a thread that was a caller, do not exist in the child of a fork.
TEST(WideLease, IsFreeInTheChildOfAFork) {
  wait_until_idle();
  std::atomic<int> inside{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (const int64_t work : {long_work, int64_t{10'000}}) {
    threads.emplace_back([&, work] {
      const WideLease lease(2, work);
      ++inside;
      while (!over) std::this_thread::yield();
    });
  }
  while (inside != 2) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) _exit(WideLease(4, long_work).width());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  over = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 4);
}

TEST(WideLease, HasOneHolderAmongManyThreads) {
  wait_until_idle();
  std::atomic<int> wide{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const WideLease lease(8, long_work);
        if (lease.width() == 1) continue;
        const int now = ++wide;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --wide;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most.load(), 1);
}

// A piece is a 7680th of the work: 1 to 5 threads, and up to 9 halvings.
TEST(Parallel, RunsEveryPieceOfTheWorkOnce) {
  constexpr int64_t pieces = 7680;
  for (const int32_t width : {2, 3, 4, 5}) {
    for (int64_t nanoseconds = 1000; nanoseconds <= 1'024'000'000; nanoseconds *= 2) {
      std::vector<std::atomic<int>> runs(pieces);
      run_parts(width, nanoseconds, [&](int32_t part, int32_t parts) {
        for (int64_t i = pieces * part / parts; i < pieces * (part + 1) / parts; ++i) ++runs[static_cast<size_t>(i)];
      });
      for (const std::atomic<int>& count : runs) ASSERT_EQ(count, 1) << width << " threads, " << nanoseconds << " ns";
    }
  }
}

TEST(Parallel, CutsTheEndOfLongWorkFinerThanThreads) {
  std::atomic<int> most{0}, calls{0};
  run_parts(2, long_work, [&](int32_t, int32_t parts) {
    ++calls;
    int seen = most;
    while (seen < parts && !most.compare_exchange_weak(seen, parts)) {
    }
  });
  EXPECT_EQ(most, 64) << "parts of this length would make the whole";
  EXPECT_EQ(calls, 12);
}

TEST(Parallel, CutsShortWorkInOnePartForEachThread) {
  std::atomic<int> calls{0};
  run_parts(2, 10'000, [&](int32_t, int32_t parts) { calls += parts; });
  EXPECT_EQ(calls, 4);
}

// So a thread uses the same memory as in the previous region.
TEST(Parallel, GivesEachThreadTheSameRangeFirst) {
  wait_until_idle();
  constexpr int32_t width = 3;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> begun{0};
    std::atomic<double> first[width];
    for (std::atomic<double>& place : first) place = -1;
    run_parts(width, long_work, [&](int32_t part, int32_t parts) {
      std::atomic<double>& mine = first[runner()];
      if (mine >= 0) return;
      mine = static_cast<double>(part) / parts;
      ++begun;
      const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      while (begun < width && std::chrono::steady_clock::now() < late) std::this_thread::yield();
    });
    for (int32_t i = 0; i < width; ++i) EXPECT_DOUBLE_EQ(first[i], static_cast<double>(i) / width);
  }
}

TEST(Parallel, GivesEachRunningThreadANumberOfItsOwn) {
  wait_until_idle();
  std::atomic<int> inside[3] = {};
  std::atomic<int> met{0};
  run_parts(3, 100 * long_work, [&](int32_t, int32_t) {
    std::atomic<int>& here = inside[runner()];
    met += here.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --here;
  });
  EXPECT_EQ(met, 0);
}

}  // namespace
}  // namespace tenon::provider::cpu
