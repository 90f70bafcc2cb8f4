// Packs: adjacent elements that a work-item loads or stores at once. Internal to core/codegen/emit.
#pragma once

#include <cstdint>
#include <string>

#include "core/codegen/emit/dialect.h"

namespace tenon::codegen {

// Functions on packs. ep_get<count>_$d(v, b, i) loads elements i to i + count - 1 of buffer b as `count` numbers, in
// one access if the address is a multiple of its bytes. ep_put<count>_$d(b, i, v) stores them. `index`: the type of i.
// They call ep_get_$d and ep_put_$d.
std::string pack_text(const DialectWords& words, DType dtype, int64_t count, std::string_view index);

}  // namespace tenon::codegen
