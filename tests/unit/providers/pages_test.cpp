// The choice of pages for large blocks, on a simulated system and on this one.
#include "providers/cpu/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

namespace tenon::provider::cpu {
namespace {

// The simulated system: its clock, the time of a huge page, and the requests to it.
int64_t time_now = 0;
std::vector<int64_t> touches;  // nanoseconds of the next touches; the last one counts for all later ones
size_t touched = 0;
uint64_t huge = 0, joined = 0;

const PageSystem kSystem{
    [] { return time_now; },
    [](char*) { time_now += touches[std::min(touched++, touches.size() - 1)]; },
    [](char*, uint64_t size) { huge += size; },
    [](char*, uint64_t size) { joined += size; },
};

// Blocks come after a first one that is never requested, because no block begins at 0.
char* address(uint64_t at) { return reinterpret_cast<char*>((uint64_t{1} << 40) + at); }

class PagesTest : public ::testing::Test {
 protected:
  PagesTest() {
    time_now = 1;
    touched = 0;
    huge = joined = 0;
  }
  // Chooses for a block of `mib` at `mib_at`. Returns how many MiB of huge pages were requested.
  uint64_t choose(uint64_t mib_at, uint64_t mib) {
    huge = 0;
    pages_.choose(address(mib_at << 20), mib << 20);
    return huge >> 20;
  }
  void forget(uint64_t mib_at, uint64_t mib) { pages_.forget(address(mib_at << 20), mib << 20); }

  Pages pages_{kSystem};
};

constexpr int64_t kFast = 100'000, kMilliseconds = 1'000'000;

TEST_F(PagesTest, AreHugeWhereHugePagesAreFast) {
  touches = {kFast};
  EXPECT_EQ(choose(0, 64), 64u + 2);  // the page that is timed is requested first
  EXPECT_EQ(choose(64, 64), 64u + 2);
  EXPECT_EQ(touched, 2u);
}

TEST_F(PagesTest, AreHugeWhereOneOfTwoWasSlow) {
  touches = {9 * kMilliseconds, kFast};
  EXPECT_EQ(choose(0, 64), 64u + 4);
}

TEST_F(PagesTest, AreSmallWhereHugePagesAreSlowAndAreTimedAgainLater) {
  touches = {4 * kMilliseconds};
  EXPECT_EQ(choose(0, 64), 4u);
  EXPECT_EQ(choose(64, 64), 0u);
  EXPECT_EQ(choose(128, 2), 0u);
  EXPECT_EQ(touched, 2u);
  time_now += 2 * Pages::kRemembered;
  touches = {kFast};
  EXPECT_EQ(choose(130, 64), 64u + 2);
  EXPECT_EQ(joined, 0u);
}

TEST_F(PagesTest, OfAProcessThatHoldsMuchAreHugeAndSmallOnesAreJoined) {
  touches = {4 * kMilliseconds};
  for (uint64_t at = 0; at < 512; at += 64) choose(at, 64);
  EXPECT_EQ(joined, 0u);
  forget(64, 64);
  EXPECT_EQ(choose(1024, 64), 0u);  // there is room for 64 MiB again
  EXPECT_EQ(choose(2048, 32), 32u);
  EXPECT_EQ(joined >> 20, 512u);
  EXPECT_EQ(choose(3072, 32), 32u);
  EXPECT_EQ(joined >> 20, 512u);  // once
  EXPECT_EQ(touched, 2u);
}

// Blocks of this system keep the written data, whatever their pages are.
TEST(PagesOfThisSystem, KeepTheirBytesWhileTheyAreJoined) {
  constexpr uint64_t kBlock = 32 * kHugePage, kCount = 10;
  std::vector<char*> blocks, places;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kCount; ++i) {
    void* place = mmap(nullptr, kBlock + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(place, MAP_FAILED);
    places.push_back(static_cast<char*>(place));
    blocks.push_back(
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(place) + kHugePage - 1) / kHugePage * kHugePage));
    pages().choose(blocks.back(), kBlock);
    char* begin = blocks.back();
    for (int half = 0; half < 2; ++half) {
      threads.emplace_back([=] {
        if (i % 2 == 0) std::memset(begin + half * kBlock / 2, static_cast<int>(i) + 1, kBlock / 2);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kCount; ++i) {
    for (uint64_t at = 0; at < kBlock; at += 999) {
      ASSERT_EQ(blocks[i][at], i % 2 == 0 ? static_cast<char>(i + 1) : 0) << i << " at " << at;
    }
    pages().forget(blocks[i], kBlock);
    munmap(places[i], kBlock + kHugePage);
  }
}

}  // namespace
}  // namespace tenon::provider::cpu
