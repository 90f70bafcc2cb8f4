// Teams: every thread of a region runs once; barriers hold; regions work from several threads, within regions and after
// a pause; the functions that oneDNN calls return what OpenMP would return.
#include "providers/cpu/threads/team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "ep_api/ep_api.h"
#include "providers/cpu/threads/openmp.h"

namespace tenon::provider::cpu {
namespace {

using Function = std::function<void(int32_t thread, int32_t width)>;

void region(int32_t width, Function function) {
  GOMP_parallel([](void* data) { (*static_cast<Function*>(data))(omp_get_thread_num(), omp_get_num_threads()); },
                &function, static_cast<unsigned>(width), 0);
}

TEST(Team, RunsEveryPartOnce) {
  for (const int32_t width : {2, 7, 3, 1, 16}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(width));
    region(width, [&](int32_t thread, int32_t threads) {
      EXPECT_EQ(threads, width);
      ++calls.at(static_cast<size_t>(thread));
    });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1) << width;
  }
}

TEST(Team, RunsThousandsOfRegionsAndSeesTheirWrites) {
  std::vector<int64_t> sums(4);  // not atomic: the end of a region orders the accesses
  for (int64_t round = 0; round < 20'000; ++round) {
    region(4, [&](int32_t thread, int32_t) { sums[static_cast<size_t>(thread)] += round; });
    ASSERT_EQ(sums[0] + sums[1] + sums[2] + sums[3], 4 * (round * (round + 1) / 2));
  }
}

TEST(Team, HoldsEveryThreadAtABarrier) {
  constexpr int32_t width = 4;
  std::vector<int> arrived(width);
  std::atomic<int> early{0};
  region(width, [&](int32_t thread, int32_t) {
    for (int step = 1; step <= 500; ++step) {
      arrived[static_cast<size_t>(thread)] = step;
      if (step % 100 == thread) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      GOMP_barrier();
      for (const int of_other : arrived) early += of_other < step ? 1 : 0;
      GOMP_barrier();
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(Team, WakesWorkersThatSleep) {
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) {
    region(3, [&](int32_t, int32_t) { ++calls; });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than workers spin
  }
  EXPECT_EQ(calls, 60);
}

TEST(Team, ServesSeveralCallersAtOnce) {
  std::atomic<int64_t> calls{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        region(3, [&](int32_t, int32_t width) {
          calls += width == 3 ? 1 : 1000;
          GOMP_barrier();
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 4 * 500 * 3);
}

// A worker that takes a part keeps it until the caller has run all others.
TEST(Team, LeavesALateWorkerWhatIsLeft) {
  std::atomic<int> by_caller{0}, by_worker{0};
  const std::thread::id caller = std::this_thread::get_id();
  Function part = [&](int32_t, int32_t) {
    if (std::this_thread::get_id() == caller) {
      ++by_caller;
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that the worker arrives
    } else {
      ++by_worker;
      while (by_caller < 39) std::this_thread::yield();
    }
  };
  Team::run([](void* data) { (*static_cast<Function*>(data))(Team::part(), Team::parts()); }, &part, 2, 40);
  EXPECT_EQ(by_caller + by_worker, 40);
  EXPECT_GE(by_caller, 39);
}

TEST(Team, EndsWithoutWorkersThatSleep) {
  region(2, [](int32_t, int32_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the worker sleeps
  std::atomic<int> runs{0};
  for (int round = 0; round < 1000; ++round) {
    Function part = [&](int32_t, int32_t) { ++runs; };
    Team::run([](void* data) { (*static_cast<Function*>(data))(0, 0); }, &part, 2, 8, false);
  }
  EXPECT_EQ(runs, 8000);
}

// A worker that arrives after the end of a region must use neither the team nor the closure of the region.
TEST(Team, ManyShortRegionsOfManyPartsSeeOnlyTheirOwnClosure) {
  for (int round = 0; round < 30'000; ++round) {
    std::atomic<int> runs{0};
    const int32_t parts = 1 + round % 9;
    struct Closure {
      std::atomic<int>* runs;
      int32_t parts;
      int alive = 77;
    };
    {
      Closure closure{&runs, parts};
      Team::run(
          [](void* data) {
            auto& mine = *static_cast<Closure*>(data);
            *mine.runs += mine.alive == 77 && mine.parts == Team::parts() && Team::part() < mine.parts ? 1 : 1000;
          },
          &closure, 3, parts);
      closure.alive = 0;
    }
    ASSERT_EQ(runs, parts);
  }
}

TEST(Team, IsNarrowWithinARegion) {
  std::atomic<int> inner{0};
  region(2, [&](int32_t thread, int32_t) {
    region(2, [&](int32_t number, int32_t width) {
      inner += number == 0 && width == 1 && omp_in_parallel() == 1 ? 1 : 1000;
      GOMP_barrier();
    });
    EXPECT_EQ(omp_get_thread_num(), thread) << "the outer region goes on";
    EXPECT_EQ(omp_get_num_threads(), 2);
  });
  EXPECT_EQ(inner, 2);
  EXPECT_EQ(omp_in_parallel(), 0);
}

TEST(Team, IsOfOneThreadOutsideOfRegions) {
  EXPECT_EQ(omp_get_thread_num(), 0);
  EXPECT_EQ(omp_get_num_threads(), 1);
  EXPECT_EQ(omp_in_parallel(), 0);
  GOMP_barrier();
}

TEST(Team, HasTheWidthThatTheThreadSet) {
  const int before = omp_get_max_threads();
  set_region_width(5);
  std::atomic<int> calls{0};
  region(0, [&](int32_t, int32_t width) { calls += width == 5 ? 1 : 1000; });
  EXPECT_EQ(calls, 5);
  int other = 0;
  std::thread([&] { other = omp_get_max_threads(); }).join();
  EXPECT_EQ(other, before) << "of another thread";
  set_region_width(before);
}

#if EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_THREAD  // it forbids threads in a forked process
TEST(Team, WorksInAForkedProcess) {
  region(3, [](int32_t, int32_t) {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> calls{0};
    region(3, [&](int32_t, int32_t) { ++calls; });
    _exit(calls == 3 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace tenon::provider::cpu
