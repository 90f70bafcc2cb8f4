#include "sdk/conformance/verdict.h"

#include <algorithm>

#include "primitives/text/format.h"

namespace tenon::conformance {

std::string with_rule(std::string text, std::string_view rule) {
  for (size_t at = text.find(" (rule "); at != std::string::npos; at = text.find(" (rule ")) {
    text.erase(at, text.find(')', at) + 1 - at);
  }
  const size_t end = std::min(text.find('\n'), text.size());
  size_t stop = end;
  while (stop > 0 && text[stop - 1] == '.') --stop;
  return text.replace(stop, end - stop, fmt::format(" (rule {}).", rule));
}

std::string status_text(ep_status status) {
  const bool known = status >= EP_STATUS_OK && status <= EP_STATUS_INTERNAL;
  return known ? fmt::format("'{}'", code_name(static_cast<Code>(status))) : fmt::format("{}", status);
}

}  // namespace tenon::conformance
