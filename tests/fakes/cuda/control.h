// The switches by which a test controls the fake driver, and the fake's observations. The fake is a library of its own.
// A test reaches this struct through the symbol fake_cuda_control of the library that it loaded.
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
  std::vector<unsigned char> arguments;  // the kernel's one parameter
};

struct Control {
  std::atomic<int> version{13000};
  std::atomic<int> devices{2};
  std::atomic<int> init_result{0};  // result of cuInit
  std::atomic<int> capability{90};
  std::atomic<bool> pools{true};       // the driver has stream-ordered allocation
  std::atomic<bool> pools_work{true};  // false: the driver has it, but no pool can be made
  std::atomic<bool> peers{true};       // a device can get access to the memory of another
  std::atomic<uint64_t> memory{uint64_t{256} << 20};
  std::atomic<int> delay_us{0};         // longest delay of a piece of work
  std::atomic<int> lost{0};             // result of every later call
  std::atomic<int> fail_launch{0};      // result of the next launch, once
  std::atomic<int> fail_module{0};      // result of the next module load, once
  std::atomic<int> fail_graph{0};       // result of the next instantiation of a graph, once
  std::atomic<int> fail_cudnn{0};       // status of the next execution of a plan of cuDNN, once
  std::atomic<bool> run_kernels{true};  // false: launches are recorded and compute nothing

  std::atomic<int> last_priority{0};  // priority of the last stream made

  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> graph_launches{0};
  std::atomic<uint64_t> peer_copies{0};
  std::atomic<int64_t> allocated{0};  // bytes of device memory
  std::atomic<int64_t> pinned{0};     // bytes of pinned memory
  std::atomic<int64_t> objects{0};    // streams, events, modules, pools, retained contexts, objects of cuDNN
  std::atomic<uint64_t> overlaps{0};  // pieces of work that ran at the same time as one of another stream

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

  // The first misuse: a call without a current context or in the context of another device, memory out of range or of
  // another device.
  std::string violation() {
    const std::lock_guard lock(mutex_);
    return violation_;
  }
  void violate(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (violation_.empty()) violation_ = text;
  }

  // Forgets a misuse that a test caused on purpose.
  void forgive() {
    const std::lock_guard lock(mutex_);
    violation_.clear();
  }

  void reset() {
    version = 13000;
    devices = 2;
    init_result = lost = fail_launch = fail_module = fail_graph = fail_cudnn = delay_us = 0;
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
