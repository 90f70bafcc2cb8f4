// Machines: a fixture on the asynchronous fake. Each test starts and ends with nothing in flight.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {

inline constexpr int64_t kWords = 16;

class Machines : public ::testing::Test {
 protected:
  void SetUp() override {
    machine.settle();
    fakes::async_control().reset();
  }
  void TearDown() override {
    machine.settle();
    EXPECT_EQ(fakes::async_control().violation(), "");
    fakes::async_control().reset();
  }

  StorageHandle filled(int device, uint32_t value) {
    StorageHandle handle = std::move(machine.allocate(device, kWords)).value();
    EXPECT_TRUE(machine.upload(handle.get(), 0, std::vector<uint32_t>(kWords, value)).ok());
    return handle;
  }
  Status mix(Storage* dst, Storage* a, Storage* b, int stream, int64_t how = fakes::kMixRuns) {
    return machine.mix(0, stream, {dst, 0}, {a, 0}, {b, 0}, kWords, 1, how, dst != a && dst != b);
  }

  AsyncMachine& machine = AsyncMachine::get();

  // Stops the devices, and lets them continue after a while.
  static std::thread held_for(std::chrono::milliseconds time) {
    fakes::async_control().hold = true;
    return std::thread([time] {
      std::this_thread::sleep_for(time);
      fakes::async_control().hold = false;
    });
  }
};

}  // namespace tenon::testing
