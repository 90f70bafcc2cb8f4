// The caching allocator over a provider that only counts.
#include "core/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "core/memory/size_class.h"
#include "tests/unit/memory/counting_device.h"

namespace tenon::memory {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

CountingDevice::Provider& provider = CountingDevice::provider();

class AllocatorTest : public ::testing::Test {
 protected:
  ~AllocatorTest() override {
    allocator_.reset();
    EXPECT_EQ(provider.held, 0u);
  }

  Block take(uint64_t bytes) {
    Result<Block> block = allocator_->allocate(bytes, &waits_);
    EXPECT_TRUE(block.ok()) << block.status().message();
    return block.value();
  }
  void give(const Block& block) { allocator_->release(block, {}); }

  CountingDevice device_;
  std::unique_ptr<Allocator> allocator_ = make_allocator(&device_.opened());
  TicketList waits_;
};

TEST(SizeClass, WastesAtMostAnEighthAboveHalfAKilobyte) {
  for (uint64_t bytes = 1; bytes <= kSmallLimit; ++bytes) {
    const uint64_t given = class_bytes(size_class(bytes));
    ASSERT_GE(given, bytes);
    if (bytes > 512) {
      ASSERT_LE(given * 8, bytes * 9 + 8) << bytes;
    }
    if (size_class(bytes) > 0) {
      ASSERT_LT(class_bytes(size_class(bytes) - 1), bytes);
    }
  }
}

TEST_F(AllocatorTest, BlocksNeverOverlapAndKeepTheirBytes) {
  std::mt19937 random(7);
  struct Live {
    Block block;
    uint64_t asked;
    unsigned char mark;
  };
  std::vector<Live> live;
  const auto check = [](const Live& one) {
    for (uint64_t i = 0; i < one.asked; i += std::max<uint64_t>(1, one.asked / 64)) {
      ASSERT_EQ(static_cast<unsigned char>(one.block.host[i]), one.mark);
    }
    ASSERT_EQ(static_cast<unsigned char>(one.block.host[one.asked - 1]), one.mark);
  };
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 200 && random() % 2 == 0) {
      const uint64_t asked = 1 + random() % (random() % 8 == 0 ? 300000 : 40000);
      const auto mark = static_cast<unsigned char>(random());
      const Block block = take(asked);
      ASSERT_GE(block.size, asked);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block.host) % 64, 0u);
      std::memset(block.host, mark, asked);
      live.push_back({block, asked, mark});
    } else if (!live.empty()) {
      const size_t at = random() % live.size();
      check(live[at]);
      give(live[at].block);
      live[at] = live.back();
      live.pop_back();
    }
  }
  uint64_t asked = 0;
  for (const Live& one : live) asked += one.asked;
  EXPECT_GE(allocator_->stats().live, asked);
  for (const Live& one : live) give(one.block);
  EXPECT_EQ(allocator_->stats().live, 0u);
  allocator_->trim();
  EXPECT_EQ(provider.held, 0u);
}

TEST_F(AllocatorTest, LargeBlocksWasteAtMostAnEighth) {
  for (uint64_t bytes = kSmallLimit + 1; bytes < 20 * kMiB; bytes = bytes * 5 / 4) {
    const Block block = take(bytes);
    EXPECT_LE(block.size * 8, bytes * 9) << bytes;
    give(block);
  }
}

TEST_F(AllocatorTest, ABlockGivenBackWithoutTicketsIsHandedOutWithoutAny) {
  const Block block = take(100000);
  give(block);
  waits_.clear();
  const Block again = take(100000);
  EXPECT_EQ(again.offset, block.offset);
  EXPECT_TRUE(waits_.empty());
  give(again);
}

TEST_F(AllocatorTest, AFreeBlockOfExactlyTheSizeAskedForIsTaken) {
  for (uint64_t bytes : {64 * kMiB, 4 * kMiB, uint64_t{65536}}) {
    give(take(bytes));
    const uint64_t before = provider.allocations;
    for (int i = 0; i < 10; ++i) give(take(bytes));
    EXPECT_EQ(provider.allocations, before) << bytes;
  }
}

TEST_F(AllocatorTest, ManyShapesLevelOff) {
  std::mt19937 random(3);
  uint64_t after_2000 = 0;
  for (int i = 0; i < 10000; ++i) {
    std::vector<Block> blocks;
    for (int j = 0; j < 6; ++j) blocks.push_back(take(1 + random() % (4 * kMiB)));
    for (const Block& block : blocks) give(block);
    if (i == 2000) after_2000 = provider.held;
  }
  EXPECT_LE(static_cast<double>(provider.held), 1.1 * static_cast<double>(after_2000));
}

TEST_F(AllocatorTest, TenThousandThreadsLeaveNothingBehind) {
  uint64_t after_2000 = 0;
  for (int i = 0; i < 10000; ++i) {
    std::thread([&] {
      TicketList waits;
      std::vector<Block> blocks;
      for (uint64_t bytes : {40u, 700u, 5000u, 30000u, 100000u}) {
        blocks.push_back(std::move(allocator_->allocate(bytes, &waits)).value());
      }
      for (const Block& block : blocks) allocator_->release(block, {});
    }).join();
    if (i == 2000) after_2000 = provider.held;
  }
  EXPECT_EQ(allocator_->stats().live, 0u);
  EXPECT_LE(static_cast<double>(provider.held), 1.1 * static_cast<double>(after_2000));
}

TEST_F(AllocatorTest, BlocksFreedByAnotherThreadComeBack) {
  constexpr int kRounds = 300;
  uint64_t early = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 500; ++i) blocks.push_back(take(256));
    std::thread([&] {
      for (const Block& block : blocks) allocator_->release(block, {});
    }).join();
    if (round == 3) early = provider.held;
  }
  EXPECT_EQ(allocator_->stats().live, 0u);
  EXPECT_EQ(provider.held, early);
}

TEST_F(AllocatorTest, WhatTwoTicksDidNotTouchGoesBack) {
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(take(3 * kMiB));
  const Block kept = take(3 * kMiB);
  for (const Block& block : blocks) give(block);
  const uint64_t cached = allocator_->stats().cached;
  EXPECT_GE(cached, 30 * kMiB);
  allocator_->tick();
  EXPECT_EQ(allocator_->stats().cached, cached);
  allocator_->tick();
  EXPECT_LT(allocator_->stats().cached, 16 * kMiB);
  give(kept);
}

TEST_F(AllocatorTest, FreeBytesStayUnderTheRecentPeak) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(take(20 * kMiB + static_cast<uint64_t>(round) * 3 * kMiB));
    for (const Block& block : blocks) give(block);
    const Stats stats = allocator_->stats();
    EXPECT_LE(stats.cached, std::max(64 * kMiB, stats.peak));
  }
}

// Within one tick, the block that was freed last serves the next request of its size.
TEST_F(AllocatorTest, TheBoundTakesWhatWasUsedLongestAgo) {
  const Block first = take(48 * kMiB), second = take(48 * kMiB);
  give(first);
  give(second);
  const Block kept = take(66 * kMiB);
  give(take(66 * kMiB));
  const uint64_t allocations = provider.allocations;
  for (int round = 0; round < 10; ++round) give(take(66 * kMiB));
  EXPECT_EQ(provider.allocations, allocations);
  EXPECT_LT(provider.held, 200 * kMiB) << "the bound did not apply";
  give(kept);
}

TEST_F(AllocatorTest, OutOfMemoryGivesBackTheCacheFirst) {
  provider.capacity = 64 * kMiB;
  for (int i = 0; i < 12; ++i) give(take((4 + static_cast<uint64_t>(i)) * kMiB));
  const Block large = take(60 * kMiB);
  give(large);
}

// Free small blocks of one size, held by the thread, occupy all memory. A block of another size needs a slab of its
// own.
TEST_F(AllocatorTest, OutOfMemoryGivesBackSmallBlocksOfOtherSizesFirst) {
  provider.capacity = 8 * kMiB;
  std::vector<Block> blocks;
  for (;;) {
    Result<Block> block = allocator_->allocate(kSmallLimit, &waits_);
    if (!block.ok()) break;
    blocks.push_back(block.value());
  }
  ASSERT_GE(blocks.size() * kSmallLimit, 7 * kMiB);
  for (const Block& block : blocks) give(block);
  give(take(64));
}

TEST_F(AllocatorTest, OutOfMemoryNamesWhoHoldsWhat) {
  provider.capacity = 16 * kMiB;
  const Block held = take(10 * kMiB);
  const Result<Block> refused = allocator_->allocate(10 * kMiB, &waits_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::out_of_device_memory);
  const std::string& text = refused.status().message();
  EXPECT_NE(text.find("10485760 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("test:0: 10.0 MiB live"), std::string::npos) << text;
  EXPECT_NE(text.find("1 x 10 MiB"), std::string::npos) << text;
  give(held);
  give(take(10 * kMiB));
}

TEST_F(AllocatorTest, EachRefusedAllocationIsAnErrorAndHurtsNothing) {
  provider.refuse = 1;
  for (uint64_t bytes : {1u, 100u, 5000u, 32768u, 32769u, 1000000u}) {
    const Result<Block> refused = allocator_->allocate(bytes, &waits_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::out_of_device_memory);
  }
  provider.refuse = 0;
  give(take(100));
  give(take(100000));
}

TEST(ExclusiveAllocator, GivesEveryTensorABlockOfItsOwnAndTakesFreeOnesAgain) {
  CountingDevice device;
  device.opened().info.pools[0].flags |= EP_POOL_FLAG_EXCLUSIVE;
  const std::unique_ptr<Allocator> allocator = make_allocator(&device.opened());
  std::mt19937_64 random(5);
  for (int round = 0; round < 3; ++round) {
    std::vector<Block> blocks;
    std::set<const ep_memory*> memories;
    TicketList waits;
    for (int i = 0; i < 200; ++i) {
      const uint64_t bytes = 1 + random() % (i % 2 == 0 ? 300 : 300000);
      blocks.push_back(
          (i % 3 == 0 ? allocator->allocate_aligned(bytes, &waits) : allocator->allocate(bytes, &waits)).value());
      memories.insert(blocks.back().memory);
      EXPECT_EQ(blocks.back().offset, 0u);
      EXPECT_GE(blocks.back().size, bytes);
      EXPECT_LE(blocks.back().size, std::max<uint64_t>(512, bytes + bytes / 8 + 512));
    }
    EXPECT_EQ(memories.size(), blocks.size());
    for (const Block& block : blocks) allocator->release(block, {});
    random.seed(5);
    if (round == 0) device.provider().allocations = 0;
    EXPECT_EQ(device.provider().allocations.load(), 0u) << "the second and third round take what is free";
  }
}

TEST(ExclusiveAllocator, HoldsNoMoreBlocksThanTheDeviceAllows) {
  CountingDevice device;
  device.opened().info.pools[0].flags |= EP_POOL_FLAG_EXCLUSIVE;
  device.opened().info.pools[0].maximum_allocations = 5;
  const std::unique_ptr<Allocator> allocator = make_allocator(&device.opened());
  TicketList waits;
  for (uint64_t size = 1000; size < 100000; size += 9000) {
    allocator->release(allocator->allocate(size, &waits).value(), {});
    EXPECT_LE(device.provider().blocks.load(), 5u);
  }
  std::vector<Block> held;
  for (int i = 0; i < 5; ++i) held.push_back(allocator->allocate(1000, &waits).value());
  const Status refused = allocator->allocate(1000, &waits).status();
  EXPECT_EQ(refused.code(), Code::out_of_device_memory);
  EXPECT_NE(refused.message().find("test:0 allows 5 blocks, and all are in use"), std::string::npos)
      << refused.message();
  for (const Block& block : held) allocator->release(block, {});
}

TEST_F(AllocatorTest, ThreadsTakeAndGiveTogether) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      TicketList waits;
      std::vector<Block> live;
      for (int i = 0; i < 5000; ++i) {
        if (live.size() < 50 && random() % 2 == 0) {
          const Block block = std::move(allocator_->allocate(1 + random() % 50000, &waits)).value();
          block.host[0] = static_cast<char>(t);
          block.host[block.size - 1] = static_cast<char>(t);
          live.push_back(block);
        } else if (!live.empty()) {
          ASSERT_EQ(live.back().host[0], static_cast<char>(t));
          allocator_->release(live.back(), {});
          live.pop_back();
        }
        if (i % 1000 == 0) allocator_->tick();
      }
      for (const Block& block : live) allocator_->release(block, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator_->stats().live, 0u);
}

}  // namespace
}  // namespace tenon::memory
