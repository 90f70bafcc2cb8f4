// Two devices that copy from each other directly, on the asynchronous fake.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "loader/loader.h"
#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {
namespace {

constexpr int64_t kWords = 16;

class Peers : public ::testing::Test {
 protected:
  void SetUp() override {
    settle();
    fakes::async_control().reset();
  }
  void TearDown() override {
    settle();
    EXPECT_EQ(fakes::async_control().violation(), "");
    fakes::async_control().reset();
  }
  static void settle() {
    AsyncMachine::get().settle();
    AsyncMachine::peers().settle();
  }

  // 31 * 3 + 3 + 1 on device 0, still pending, and a copy of it on device 1.
  StorageHandle copy_of_pending(AsyncMachine& on) {
    StorageHandle a = std::move(on.allocate(0, kWords)).value();
    EXPECT_TRUE(on.upload(a.get(), 0, std::vector<uint32_t>(kWords, 3)).ok());
    StorageHandle b = std::move(on.allocate(0, kWords)).value();
    EXPECT_TRUE(on.mix(0, 0, {b.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixRuns, true).ok());
    StorageHandle c = std::move(on.allocate(1, kWords)).value();
    EXPECT_TRUE(on.copy({c.get(), 0}, {b.get(), 0}, kWords, true).ok());
    return c;
  }
  void expect_copied(AsyncMachine& on, const StorageHandle& copy, uint64_t peer_copies) {
    EXPECT_EQ(on.download(copy.get()).value(), std::vector<uint32_t>(kWords, 31 * 3 + 3 + 1));
    EXPECT_EQ(fakes::async_control().peer_copies, peer_copies);
    fakes::async_control().peer_copies = 0;
  }
};

TEST_F(Peers, OneInstructionMovesTheBytesOnceTheyAreThere) {
  fakes::async_control().delay_us = 3000;
  expect_copied(AsyncMachine::peers(), copy_of_pending(AsyncMachine::peers()), 1);
  expect_copied(AsyncMachine::get(), copy_of_pending(AsyncMachine::get()), 0);
}

TEST_F(Peers, TheSourceMayBeOverwrittenAndDroppedAtOnce) {
  fakes::async_control().delay_us = 2000;
  AsyncMachine& peers = AsyncMachine::peers();
  std::vector<StorageHandle> copies;
  for (uint32_t i = 1; i <= 20; ++i) {
    StorageHandle source = std::move(peers.allocate(0, kWords)).value();
    ASSERT_TRUE(peers.upload(source.get(), 0, std::vector<uint32_t>(kWords, i)).ok());
    copies.push_back(std::move(peers.allocate(1, kWords)).value());
    ASSERT_TRUE(peers.copy({copies.back().get(), 0}, {source.get(), 0}, kWords, true).ok());
    ASSERT_TRUE(peers.upload(source.get(), 0, std::vector<uint32_t>(kWords, 1000)).ok());
  }
  for (uint32_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(peers.download(copies[i - 1].get()).value(), std::vector<uint32_t>(kWords, i));
  }
}

TEST_F(Peers, AnErrorTravelsFromTheSourceToTheCopy) {
  AsyncMachine& peers = AsyncMachine::peers();
  StorageHandle a = std::move(peers.allocate(0, kWords)).value();
  ASSERT_TRUE(peers.mix(0, 0, {a.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixFaults, false).ok());
  StorageHandle b = std::move(peers.allocate(1, kWords)).value();
  ASSERT_TRUE(peers.copy({b.get(), 0}, {a.get(), 0}, kWords, true).ok());
  EXPECT_EQ(peers.download(b.get()).status().code(), Code::invalid_argument);
}

// A machine whose devices can be closed.
class Passing : public AsyncMachine {
 public:
  explicit Passing(const std::string& provider) : AsyncMachine(provider), provider_(provider) {}
  void close() {
    settle();
    drop_primitives();
    tenon::retire(provider_);
    forget();
  }

 private:
  std::string provider_;
};

TEST_F(Peers, DevicesThatAreOpenedAgainAreAskedAgain) {
  loader::register_provider("again", fakes::async_query);
  for (const bool direct : {true, false, true}) {
    fakes::async_control().peers = direct;
    Passing again("again");
    ASSERT_TRUE(again.open().ok());
    expect_copied(again, copy_of_pending(again), direct ? 1 : 0);
    again.close();
  }
}

TEST_F(Peers, ADeviceThatCouldNotAnswerIsAskedAgain) {
  loader::register_provider("unsure", fakes::async_query);
  fakes::async_control().peers = true;
  Passing unsure("unsure");
  ASSERT_TRUE(unsure.open().ok());
  auto& peer_open = unsure.device(1)->ops.peer_open;
  const auto answer = peer_open;
  peer_open = [](ep_device*, ep_device*, ep_error**) -> ep_status { return EP_STATUS_OUT_OF_HOST_MEMORY; };
  expect_copied(unsure, copy_of_pending(unsure), 0);
  peer_open = answer;
  expect_copied(unsure, copy_of_pending(unsure), 1);
  unsure.close();
}

}  // namespace
}  // namespace tenon::testing
