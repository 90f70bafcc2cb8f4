// Prints sizes and indices as C expressions on int64_t. Internal to core/codegen/emit.
#pragma once

#include <functional>
#include <string>

#include "core/symbolic/arena.h"

namespace tenon::codegen {

// `symbol(node)` gives the text of a symbol. Quotients and remainders of non-negative sizes use the C operators.
// Others, and minimum and maximum, call functions: ep_floor_quotient, ep_floor_rest, ep_least, ep_most.
std::string size_text(const symbolic::Arena& arena, SymDim size, const std::function<std::string(uint32_t)>& symbol);

}  // namespace tenon::codegen
