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

  // Starts `program` with the argument `chosen`, if that is not empty. NULL: `*why_not` says why.
  static std::unique_ptr<CompileHelper> start(const std::string& program, const std::string& chosen,
                                              std::string* why_not);
  ~CompileHelper();
  CompileHelper(const CompileHelper&) = delete;
  CompileHelper& operator=(const CompileHelper&) = delete;

  // Asks, and waits for the answer until `deadline`. `stops(context)` is asked every few milliseconds. After any other
  // end than `answered` the helper is of no more use.
  End ask(const helper::Question& question, const std::string& text, Clock::time_point deadline,
          bool (*stops)(const void* context), const void* context);
  const helper::Answer& answer() const { return answer_; }
  std::string& output() { return output_; }
  std::string& binary() { return binary_; }
  // True in a process that was forked from the one that started the helper: it may not use it.
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
