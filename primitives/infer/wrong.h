// The error of a rule: a sentence that begins with the name of the op. Internal to primitives/infer.
#pragma once

#include <string_view>

#include "primitives/status/status.h"
#include "primitives/text/format.h"

namespace tenon::infer {

template <class... Parts>
Status wrong(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Subject{op}, Code::invalid_argument, fmt::format(text, parts...));
}

}  // namespace tenon::infer
