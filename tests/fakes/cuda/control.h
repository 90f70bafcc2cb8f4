// How a test steers the fake driver, and what it saw. The fake is a library of its own; a test reaches this through the
// symbol fake_cuda_control of the one that it loaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::fakes::cuda {

struct Launch {
  std::string kernel;
  uint64_t grid = 0;
  uint32_t block = 0;
  std::vector<unsigned char> arguments;  // the one parameter
};

struct Control {
  std::atomic<int> version{13000};
  std::atomic<int> devices{2};
  std::atomic<int> init_result{0};  // what cuInit answers
  std::atomic<int> capability{90};
  std::atomic<bool> pools{true};       // stream-ordered allocation
  std::atomic<bool> pools_work{true};  // though it is there, no pool can be made otherwise
  std::atomic<bool> peers{true};       // a device can be given access to another one's memory
  std::atomic<uint64_t> memory{uint64_t{256} << 20};
  std::atomic<int> delay_us{0};         // the longest that one piece of work waits before it runs
  std::atomic<int> lost{0};             // what every later call answers
  std::atomic<int> fail_launch{0};      // what the next launch answers, once
  std::atomic<int> fail_module{0};      // what the next module that is loaded answers, once
  std::atomic<bool> run_kernels{true};  // false: launches are recorded and do nothing

  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> peer_copies{0};
  std::atomic<int64_t> allocated{0};  // bytes of device memory
  std::atomic<int64_t> pinned{0};     // bytes of pinned memory
  std::atomic<int64_t> objects{0};    // streams, events, modules, pools, retained contexts
  std::atomic<uint64_t> overlaps{0};  // pieces of work that ran while one of another stream did

  // The launches recorded since `record` was set.
  std::atomic<bool> record{false};
  std::vector<Launch> recorded() {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  void note(Launch launch) {
    const std::lock_guard lock(mutex_);
    recorded_.push_back(std::move(launch));
  }

  // The first misuse: a call without a current context or in another one's, memory out of range or of another device.
  std::string violation() {
    const std::lock_guard lock(mutex_);
    return violation_;
  }
  void violate(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (violation_.empty()) violation_ = text;
  }

  // What was done wrong on purpose.
  void forgive() {
    const std::lock_guard lock(mutex_);
    violation_.clear();
  }

  void reset() {
    version = 13000;
    devices = 2;
    init_result = lost = fail_launch = fail_module = delay_us = 0;
    capability = 90;
    pools = pools_work = peers = run_kernels = true;
    memory = uint64_t{256} << 20;
    record = false;
    const std::lock_guard lock(mutex_);
    recorded_.clear();
    violation_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<Launch> recorded_;
  std::string violation_;
};

}  // namespace tenon::fakes::cuda
