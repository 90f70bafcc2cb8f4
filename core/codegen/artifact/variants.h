// The buckets of a kernel's sizes, and the text of each. Internal to core/codegen/artifact.
#pragma once

#include <vector>

#include "core/codegen/artifact/artifact.h"

namespace tenon::codegen {

// The variants of a kernel, in the order of Artifact::variants. Errors: those of print_for.
Result<std::vector<Variant>> make_variants(const Kernel& kernel, const ep_dialect_info& dialect,
                                           const TilesOf& tiles_of);

}  // namespace tenon::codegen
