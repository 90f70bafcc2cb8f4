// How a test of the kit says what it found: a Status. Ok is passed; skipped() and broken() make the other two.
#pragma once

#include <string_view>

#include "primitives/status/sentence.h"
#include "primitives/status/status.h"

namespace tenon::conformance {

// Code::cancelled means skipped, in the kit and nowhere else: Subject::call never passes a provider's own on.
constexpr Code skip_code = Code::cancelled;

template <class... Parts>
Status skipped(const Parts&... parts) {
  return Status(skip_code, sentence(parts...));
}

// A rule of ep_api/README.md was broken: "<what happened> (rule E01)."
template <class... Parts>
Status broken(std::string_view rule, const Parts&... parts) {
  return Status(Code::internal, sentence(parts..., " (rule ", rule, ")."));
}

}  // namespace tenon::conformance
