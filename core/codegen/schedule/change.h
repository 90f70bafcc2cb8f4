// Applies a schedule primitive to a kernel completely or not at all. Internal to core/codegen/schedule.
#pragma once

#include <string>
#include <utility>

#include "core/codegen/loop/ir.h"
#include "primitives/status/error.h"

namespace tenon::codegen {

// Runs `change` on a copy, with the copy's arena open, and keeps the copy if it verifies.
template <class Change>
Status changed(Kernel* kernel, const Change& change) {
  Kernel copy = *kernel;
  try {
    const symbolic::ArenaScope scope(copy.arena);
    TENON_RETURN_IF_ERROR(change(&copy));
  } catch (const Error& error) {
    return error.status();
  }
  TENON_RETURN_IF_ERROR(verify(copy));
  *kernel = std::move(copy);
  return {};
}

inline Status refused(std::string sentence) { return {Code::unsupported, std::move(sentence)}; }

}  // namespace tenon::codegen
