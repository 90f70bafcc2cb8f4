// InFlight: a fixture on the asynchronous fake and the cpu. Each test starts and ends with nothing in flight.
#pragma once

#include "core/tensor/device.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/tensor/expect_error.h"
#include "tests/unit/tensor/lent_memory.h"

namespace tenon::testing {

class InFlight : public ::testing::Test {
 protected:
  InFlight() {
    fakes::async_control().memory = uint64_t{64} << 20;  // another test may have reset it
    settle();
  }
  ~InFlight() override {
    settle();
    EXPECT_EQ(fakes::async_control().violation(), "");
  }

  static Device device() {
    static const Device async = [] {
      loader::register_provider("async", fakes::async_query);
      return Device("async:0");
    }();
    return async;
  }

  static void settle() {
    fakes::async_control().hold = false;
    fakes::async_control().delay_us = 0;
    fakes::async_control().fail_launch = -1;
    while (!error_of([] { device().synchronize(); }).ok()) continue;
  }

  // Leaves free blocks of about `elements` floats on the device, filled with a value that no test expects.
  static void poison(int64_t elements) {
    const std::vector<float> values(static_cast<size_t>(elements), -77.0f);
    std::vector<Tensor> held;
    for (int i = 0; i < 3; ++i) held.push_back(Tensor::from<float>(values, {elements}, device()));
    settle();
  }

  std::mt19937_64 random_{7};
};

}  // namespace tenon::testing
