// Layout class: the fast path of most ops. An element-wise op on a synchronous device is folded on the stack. If the
// class of the folded call (op, dtypes, device, rank, and each stride as 0, 1 or more) has a primitive, that primitive
// is launched. Only the output needs heap memory. Internal.
#pragma once

#include <cstdint>

#include "core/interpreter/prepared.h"
#include "ep_api/ep_api.h"

namespace tenon {

// apply_by_class for ops of one, two and three arguments.
template <uint32_t kArity>
bool apply_arity(const OpCall& call);
extern template bool apply_arity<1>(const OpCall& call);
extern template bool apply_arity<2>(const OpCall& call);
extern template bool apply_arity<3>(const OpCall& call);

// Runs `call`, of an element-wise op, if its class has a primitive and process::attention is 0. False: nothing
// happened. Throws the failure of the launch.
inline bool apply_by_class(const OpCall& call) {
  switch (call.op->kind) {
    case EP_PRIMITIVE_unary: return apply_arity<1>(call);
    case EP_PRIMITIVE_binary: return apply_arity<2>(call);
    case EP_PRIMITIVE_ternary: return apply_arity<3>(call);
    default: return false;
  }
}

// Stores the primitive of `prepared`, which was made for `call`, for the class of `call`, if the primitive serves every
// shape of the class.
void learn_class(const OpCall& call, const Prepared& prepared);

}  // namespace tenon
