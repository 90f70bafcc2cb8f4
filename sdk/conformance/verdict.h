// How a test of the kit says what it found: a Status. Ok is passed; skipped(), not_claimed() and broken() make the
// others.
#pragma once

#include <string>
#include <string_view>

#include "primitives/status/status.h"
#include "primitives/text/format.h"

namespace tenon::conformance {

// Code::cancelled means skipped, in the kit and nowhere else: Subject::call never passes a provider's own on.
constexpr Code skip_code = Code::cancelled;
constexpr std::string_view unclaimed_remedy = "not claimed";

template <class... Parts>
Status skipped(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(skip_code, fmt::format(text, parts...));
}

// Skipped because the provider says that it cannot do it.
template <class... Parts>
Status not_claimed(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(skip_code, fmt::format(text, parts...), std::string(unclaimed_remedy));
}
inline bool is_unclaimed(const Status& status) {
  return status.code() == skip_code && status.remedy() == unclaimed_remedy;
}

// `text` with " (rule E01)." at the end of its first line, and no other rule.
std::string with_rule(std::string text, std::string_view rule);

// Without what the layers above have added.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "'unsupported'", or the number where it is no status of ep_api.h.
std::string status_text(ep_status status);

// A rule of ep_api/README.md was broken: "<what happened> (rule E01)." What happened may be the message of another
// failure, whose rule then goes.
template <class... Parts>
Status broken(std::string_view rule, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::internal, with_rule(fmt::format(text, parts...), rule));
}

}  // namespace tenon::conformance
