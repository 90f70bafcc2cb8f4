// The rule of all elementwise rows, which no row names.
#pragma once

#include "core/ops/op_call.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

// The dtype and dims of the result. Errors: dtypes differ, shapes do not broadcast, nothing but scalars. A template
// over OpCall and SymCall, instantiated for both.
template <class Call>
TENON_API Status infer_elementwise(const Call& call, typename Call::Meta* output);

}  // namespace tenon::ops
