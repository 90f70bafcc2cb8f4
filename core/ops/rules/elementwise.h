// The rule of all element-wise rows; rows do not name it.
#pragma once

#include "core/ops/op_call.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

// The dtype and dims of the result. Errors: dtypes differ, shapes do not broadcast, only scalars are given. A template
// over OpCall and SymCall, instantiated for both.
template <class Call>
TENON_API Status infer_elementwise(const Call& call, typename Call::Meta* output);

}  // namespace tenon::ops
