// CompileHelper: one helper process (helper/protocol.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "sdk/provider/modules/helper/protocol.h"

namespace tenon::provider {

class CompileHelper {
 public:
  using Clock = std::chrono::steady_clock;
  enum class End : uint8_t { answered, stopped, overran, broke };

  // Starts `program`, with the argument `chosen` unless it is empty. Returns NULL on failure, with the reason in
  // `*why_not`.
  static std::unique_ptr<CompileHelper> start(const std::string& program, const std::string& chosen,
                                              std::string* why_not);
  ~CompileHelper();
  CompileHelper(const CompileHelper&) = delete;
  CompileHelper& operator=(const CompileHelper&) = delete;

  // Sends the question and waits for the answer until `deadline`. Calls `stops(context)` every few milliseconds. After
  // any result other than `answered` the helper cannot be used again.
  End ask(const helper::Question& question, const std::string& text, Clock::time_point deadline,
          bool (*stops)(const void* context), const void* context);
  const helper::Answer& answer() const { return answer_; }
  std::string& output() { return output_; }
  std::string& binary() { return binary_; }
  // True in a process that was forked after the helper was started. It must not use the helper.
  bool is_foreign() const;

 private:
  CompileHelper(pid_t process, int socket);
  struct Wait;
  End send(const char* bytes, size_t size, const Wait& wait) const;
  End receive(char* bytes, size_t size, const Wait& wait) const;

  const pid_t process_;
  const pid_t owner_;
  const int socket_;
  helper::Answer answer_;
  std::string output_;
  std::string binary_;
};

}  // namespace tenon::provider
