// Progress: one line on stderr for work that takes longer than a second. Shown only on a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tenon {

// Shows the current work, its part of `total`, and the time so far. Without a total (0) a thread updates the line,
// since nobody calls at() meanwhile. With a total at() updates it, so that the program may fork. Threads: any thread
// may call its functions.
class Progress {
 public:
  explicit Progress(std::string what, uint64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` parts are done. `what` replaces the description of the current work, unless it is empty.
  void at(uint64_t done, std::string what = {});
  // Removes the line until the next update, so that something else can be printed.
  void clear();

  // "[=====>    ]  52 %  loading model.onnx, 3 s": the text for a line of `width` columns. Separate for tests.
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
