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

// Returns "'unsupported'" for example, or the number if ep_api.h has no such status.
std::string status_text(ep_status status);

// A rule of ep_api/README.md was broken: "<what happened> (rule E01)."
template <class... Parts>
Status broken(std::string_view rule, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::internal, fmt::format(text, parts...)).with_rule(rule);
}

// `failure` with `rule` if it names none: the rule of its test.
inline Status with_default_rule(const Status& failure, std::string_view rule) {
  return failure.parts().rule.empty() ? failure.with_rule(rule) : failure;
}

// `status` for the text of another failure, which names the one rule of both.
inline Status without_rule(const Status& status) { return status.with_rule({}); }

}  // namespace tenon::conformance
