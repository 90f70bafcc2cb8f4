#include "primitives/text/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "primitives/status/start_thread.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kFirst{1000}, kStep{100};
constexpr size_t kBar = 24;

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string what, uint64_t total)
    : terminal_(isatty(STDERR_FILENO) != 0), what_(std::move(what)), total_(total) {
  if (terminal_ && total == 0) static_cast<void>(start_thread(&thread_, [this] { animate(); }));
}

Progress::~Progress() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  clear();
}

void Progress::at(uint64_t done, std::string what) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  done_ = done;
  if (!what.empty()) what_ = std::move(what);
  const auto now = std::chrono::steady_clock::now();
  if (total_ > 0 && now - begin_ >= kFirst && (now - last_ >= kStep || !shown_)) show();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

std::string Progress::line(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width) {
  std::string text;
  if (total > 0) {
    const uint64_t reached = std::min(done, total);
    const size_t full = static_cast<size_t>(reached * kBar / total);
    text = fmt::format("[{}{}{}] {:3d} %  ", std::string(full, '='), full < kBar ? ">" : "",
                       std::string(kBar - std::min(kBar, full + 1), ' '), reached * 100 / total);
  }
  text += fmt::format("{}, {:.0f} s", what, seconds);
  return text.substr(0, width - std::min<size_t>(width, 1));
}

void Progress::animate() {
  std::unique_lock lock(mutex_);
  for (auto wait = kFirst; !ended_.wait_for(lock, wait, [this] { return ending_; }); wait = kStep) show();
}

void Progress::show() {
  last_ = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(last_ - begin_).count();
  std::fprintf(stderr, "\r\x1b[K%s", line(what_, done_, total_, seconds, terminal_width()).c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace tenon
