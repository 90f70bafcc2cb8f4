// A stream of the fake: a thread that runs its work in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct EventState {
  std::mutex mutex;
  std::condition_variable fired;
  uint64_t recorded = 0;
  uint64_t completed = 0;
  uint64_t completed_ns = 0;  // when its last record was completed
};

// An event may be destroyed before a stream reaches it.
struct CUevent_st {
  int device = 0;
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
  bool timed = false;
};

struct CUstream_st {
  explicit CUstream_st(int of_device);
  ~CUstream_st();
  void push(std::function<void()> work);
  void drain();

  // From now on, work is stored until it is taken, and does not run.
  void begin_capture() { captured_ = std::make_unique<std::vector<std::function<void()>>>(); }
  bool captures() const { return captured_ != nullptr; }
  std::vector<std::function<void()>> end_capture() {
    std::vector<std::function<void()>> works = std::move(*captured_);
    captured_.reset();
    return works;
  }

  const int device;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::unique_ptr<std::vector<std::function<void()>>> captured_;  // the work that the capturing thread has captured
  bool running_ = false;
  bool stopping_ = false;
  uint64_t random_;
  std::thread thread_;
};
