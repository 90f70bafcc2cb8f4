// Verdict: the first wrong result.
#pragma once

#include <mutex>
#include <string>

#include "primitives/status/status.h"

namespace tenon::testing {

class Verdict {
 public:
  void fail(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = what;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    text_.clear();
  }
  // Checks that an error names the device and the failed request.
  void check(const Status& status) {
    const std::string& text = status.message();
    const bool device = text.find("faulty:") != std::string::npos;
    bool op = false;
    for (const char* word : {"mix", "copy", "upload", "download", "allocating", "creating", "mapping", "waiting",
                             "taking", "recording", "asking", "flushing", "cannot allocate"}) {
      op = op || text.find(word) != std::string::npos;
    }
    if (!device || !op) fail("an error that names no op or no device: " + text);
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace tenon::testing
