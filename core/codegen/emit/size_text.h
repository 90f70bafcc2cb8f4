// Sizes and indices as expressions of C on int64_t. Internal to core/codegen/emit.
#pragma once

#include <functional>
#include <string>

#include "core/symbolic/arena.h"

namespace tenon::codegen {

// `symbol(node)` is the text of a symbol. Quotients and remainders of what is never negative are those of C; others,
// and minimum and maximum, are functions: ep_floor_quotient, ep_floor_rest, ep_least, ep_most.
std::string size_text(const symbolic::Arena& arena, SymDim size, const std::function<std::string(uint32_t)>& symbol);

}  // namespace tenon::codegen
