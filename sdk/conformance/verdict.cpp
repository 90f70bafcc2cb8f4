#include "sdk/conformance/verdict.h"

#include "primitives/text/format.h"

namespace tenon::conformance {

std::string status_text(ep_status status) {
  const bool known = status >= EP_STATUS_OK && status <= EP_STATUS_INTERNAL;
  return known ? fmt::format("'{}'", code_name(static_cast<Code>(status))) : fmt::format("{}", status);
}

}  // namespace tenon::conformance
