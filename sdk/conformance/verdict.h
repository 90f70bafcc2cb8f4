// The result of a test as a Status. Ok means passed. skipped(), not_claimed() and broken() make the other results.
#pragma once

#include <string>
#include <string_view>

#include "primitives/status/status.h"
#include "primitives/text/format.h"

namespace tenon::conformance {

// Code::cancelled means "skipped" inside the conformance kit. Subject::call never returns a provider's own `cancelled`.
constexpr Code skip_code = Code::cancelled;
constexpr std::string_view unclaimed_remedy = "not claimed";

template <class... Parts>
Status skipped(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(skip_code, fmt::format(text, parts...));
}

// Skipped because the provider does not claim it.
template <class... Parts>
Status not_claimed(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(skip_code, fmt::format(text, parts...), std::string(unclaimed_remedy));
}
inline bool is_unclaimed(const Status& status) {
  return status.code() == skip_code && status.remedy() == unclaimed_remedy;
}

// Returns `text` with " (rule E01)." at the end of its first line, replacing any other rule.
std::string with_rule(std::string text, std::string_view rule);

// The first line of `text`: the message without the context of the layers above.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns "'unsupported'" for example, or the number if ep_api.h has no such status.
std::string status_text(ep_status status);

// A rule of ep_api/README.md was broken: "<what happened> (rule E01)." The text may be the message of another failure;
// its rule is then replaced.
template <class... Parts>
Status broken(std::string_view rule, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::internal, with_rule(fmt::format(text, parts...), rule));
}

}  // namespace tenon::conformance
