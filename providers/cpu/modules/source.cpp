#include "providers/cpu/modules/source.h"

#include <limits>

#include "sdk/provider/error.h"
#include "sdk/provider/modules/source.h"

namespace tenon::provider::cpu {
namespace {

constexpr uint64_t most_parameter_bytes = 65536;
constexpr uint64_t most_local_bytes = uint64_t{4} << 20;

// Lists the members of FaultSink in their order. `ep_sink` is the name in EP_FAULT_PARAMETER.
constexpr const char* prefix = R"(typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
struct ep_fault_sink { int32_t raised, code, operand, reserved; int64_t value, limit; };
#define EP_FAULT_PARAMETER struct ep_fault_sink* ep_sink
static inline void ep_raise_into(struct ep_fault_sink* sink, int32_t code, int32_t operand, int64_t value, int64_t limit) {
  if (__atomic_exchange_n(&sink->raised, 1, __ATOMIC_RELAXED) != 0) return;
  sink->code = code;
  sink->operand = operand;
  sink->value = value;
  sink->limit = limit;
}
#define ep_raise(code, operand, value, limit) ep_raise_into(ep_sink, (code), (operand), (value), (limit))
)";

}  // namespace

ep_dialect_info c_dialect() {
  ep_dialect_info info{};
  info.dialect = EP_DIALECT_C;
  info.features =
      EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_STORE_8 | EP_DIALECT_FEATURE_STORE_16;
  info.group_items = 1;
  info.greatest_buffers = most_buffers;
  for (int axis = 0; axis < 3; ++axis) {
    info.group_dims[axis] = 1;
    info.groups[axis] = axis == 0 ? uint64_t{std::numeric_limits<int64_t>::max()} : 1;
  }
  info.shared_bytes = most_local_bytes;
  info.parameter_bytes = most_parameter_bytes;
  return info;
}

std::string source_of(const ep_module_desc& desc) {
  std::string source = c_integers;
  source += prefix;
  source += constants_of(desc);
  source += "#line 1 \"kernel\"\n";
  source += to_view(desc.text);
  return source;
}

}  // namespace tenon::provider::cpu
