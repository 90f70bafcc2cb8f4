// Support: how a device would compute an op in each dtype. The device is asked about the primitives that the op lowers
// to; nothing is computed and nothing is created.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/ops/signature.h"
#include "core/tensor/device.h"

namespace tenon {

// The rungs of the ladder, and what lies outside: the worst among the primitives of a call counts.
enum class Served : uint8_t {
  native,      // every primitive is the device's own; so is a call that launches nothing (a view)
  decomposed,  // the device computes it in simpler primitives
  host,        // the host device computes some of it
  refused,     // the op is not defined on the dtype, or nobody computes it
};
TENON_API std::string_view served_name(Served served);

struct DTypeSupport {
  DType dtype = DType::none;
  Served served = Served::refused;
  std::string reason;  // why it is not native: the provider's words, or the op's
};

struct OpSupport {
  std::string call;  // the call that was asked about: "softmax(f32 [4, 6], -1)"; empty: none was found
  std::vector<DTypeSupport> dtypes;
};

// Asks `device` about a call of `op` in each of `dtypes`. The call is found by trial: arguments of many shapes, until
// the rules of the op take them. An op whose arguments are values (of indices, say) may take none.
TENON_API OpSupport ask_support(const DynamicOp& op, Device device, const std::vector<DType>& dtypes);

}  // namespace tenon
