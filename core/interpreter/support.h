// Support: how a device would compute an op in each dtype. Asks the device about the primitives of the op; nothing is
// computed or created.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/ops/signature.h"
#include "core/tensor/device.h"

namespace tenon {

// The rungs of the ladder, and refusal. The worst primitive of a call decides.
enum class Served : uint8_t {
  native,      // every primitive is the device's own, or the call launches nothing (a view)
  decomposed,  // the device computes it with simpler primitives
  host,        // the host device computes some of it
  refused,     // the op is not defined for the dtype, or no device computes it
};
TENON_API std::string_view served_name(Served served);

struct DTypeSupport {
  DType dtype = DType::none;
  Served served = Served::refused;
  std::string reason;  // why it is not native, in the words of the provider or the op
};

struct OpSupport {
  std::string call;  // the call that was tried: "softmax(f32 [4, 6], -1)"; empty: none was found
  std::vector<DTypeSupport> dtypes;
};

// Asks `device` about a call of `op` in each of `dtypes`. To find a call, it tries arguments of many shapes until the
// rules of the op accept them. For an op whose arguments depend on values (such as indices), none may be found.
TENON_API OpSupport ask_support(const DynamicOp& op, Device device, const std::vector<DType>& dtypes);

}  // namespace tenon
