// fail makes the error of a call and returns its status; log_line writes one line into the host's log.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "ep_api/ep_api.h"

namespace tenon::provider {

inline ep_string to_ep_string(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view to_view(ep_string text) { return {text.data, static_cast<size_t>(text.size)}; }

// Fills `*error`, unless `error` is NULL, with `status`, a sentence and a remedy. Returns `status`.
inline ep_status fail_text(const ep_host* host, ep_error** error, ep_status status, std::string_view sentence,
                           std::string_view remedy = {}) {
  if (error != nullptr) *error = host->error_make(host, status, to_ep_string(sentence), to_ep_string(remedy));
  return status;
}

// Like fail_text, with a printf format. The sentence is cut at 511 bytes.
[[gnu::format(printf, 4, 5)]] inline ep_status fail(const ep_host* host, ep_error** error, ep_status status,
                                                    const char* format, ...) {
  char sentence[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  return fail_text(host, error, status, sentence);
}

// Like fail, with a remedy.
[[gnu::format(printf, 5, 6)]] inline ep_status fail_with_remedy(const ep_host* host, ep_error** error, ep_status status,
                                                                std::string_view remedy, const char* format, ...) {
  char sentence[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  return fail_text(host, error, status, sentence, remedy);
}

// True if the host wants the call to stop; the call then returns CANCELLED. Check it between the long steps of
// primitive_create, graph_compile and launches of a synchronous device, on the thread that the host called.
inline bool wants_to_stop(const ep_host* host) {
  return host->struct_size >= offsetof(ep_host, cancel_requested) + sizeof host->cancel_requested &&
         host->cancel_requested(host) != 0;
}

// Thrown when a call stops at the host's request; entry<f> returns CANCELLED.
struct Stopped {};

// UNSUPPORTED for a stream with flags that our ep_api.h does not have.
inline ep_status check_stream_flags(const ep_host* host, const ep_stream_desc& desc, ep_error** error) {
  const uint64_t unknown = desc.flags & ~EP_STREAM_FLAG_TIMED;
  if (unknown == 0) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_UNSUPPORTED, "The stream flags 0x%llx are unknown.",
              static_cast<unsigned long long>(unknown));
}

// Logs one line on `topic` if the host keeps messages of `level` (EP_LOG_*). Otherwise formats nothing.
[[gnu::format(printf, 4, 5)]] inline void log_line(const ep_host* host, int32_t level, std::string_view topic,
                                                   const char* format, ...) {
  if (host->log_enabled(host, level, to_ep_string(topic)) == 0) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  host->log(host, level, to_ep_string(topic), to_ep_string(line));
}

}  // namespace tenon::provider
