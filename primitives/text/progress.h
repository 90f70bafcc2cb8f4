// Progress: one line on a terminal's stderr for work that takes longer than a second, and nothing elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tenon {

// Shows what is done, how much of `total`, and the time so far. Without a total (0) a thread shows it, since nobody
// calls at() meanwhile; with one at() does, so that a program may fork. Threads: any thread may call its functions.
class Progress {
 public:
  explicit Progress(std::string what, uint64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` parts are done; `what` says what is done now, if it is not empty.
  void at(uint64_t done, std::string what = {});
  // Removes the line until it is next shown, so that something else can be printed.
  void clear();

  // "[=====>    ]  52 %  loading model.onnx, 3 s": what is shown on a line of `width` columns. Apart for tests.
  static std::string line(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width);

 private:
  void animate();
  void show();

  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string what_;
  uint64_t done_ = 0, total_;
  bool ending_ = false, shown_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
  std::thread thread_;
};

}  // namespace tenon
