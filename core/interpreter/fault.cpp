#include "core/interpreter/fault.h"

#include "loader/loader.h"
#include "primitives/status/sentence.h"

namespace tenon {

Status fault_status(std::string_view op, const ep_fault& fault) {
  switch (fault.code) {
    case EP_FAULT_INDEX_OUT_OF_RANGE:
      return Status(Code::fault, sentence(op, ": index ", fault.value, " is outside [", -fault.limit, ", ", fault.limit,
                                          ") of the axis it selects from."));
    case EP_FAULT_DIVISION_BY_ZERO: return Status(Code::fault, sentence(op, ": an integer is divided by zero."));
    case EP_FAULT_INTEGER_OVERFLOW:
      return Status(Code::fault, sentence(op, ": the least integer of its type is divided by -1, and the result does not fit."));
    default: return Status(Code::fault, sentence(op, ": the kernel met bad data (fault code ", fault.code, ")."));
  }
}

Status launch_status(ep_status code, std::string_view op, const ep_fault& fault, ep_error* error) {
  if (code != EP_STATUS_FAULT || fault.code == 0) return loader::take_error(code, error, {});
  static_cast<void>(loader::take_error(code, error, {}));
  return fault_status(op, fault);
}

}  // namespace tenon
