#include "providers/cuda/modules/source.h"

#include "providers/cuda/device.h"
#include "sdk/provider/modules/source.h"

namespace tenon::provider::cuda {
namespace {

// Together with most_module_buffers pointers and the FaultTarget, this is less than the 4096 bytes of arguments that
// every driver accepts.
constexpr uint64_t most_parameter_bytes = 3072;
constexpr uint32_t warp = 32;
constexpr uint32_t widest_load = 16;

// ep_fault_slot mirrors FaultRecord of faults/fault_log.h; ep_fault_target mirrors FaultTarget of kernels/arguments.h.
constexpr const char* prefix = R"(typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
struct ep_fault_slot { volatile uint64_t sequence; int64_t value; int32_t code, reserved; int64_t limit; int32_t operand, unused; };
struct ep_fault_target { uint64_t claim, slot, sequence; };
#define EP_FAULT_PARAMETER ep_fault_target ep_fault
static __device__ inline void ep_raise_into(const ep_fault_target& target, int32_t code, int32_t operand, int64_t value, int64_t limit) {
  if (atomicMax((uint64_t*)target.claim, target.sequence) >= target.sequence) return;
  ep_fault_slot* slot = (ep_fault_slot*)target.slot;
  slot->value = value;
  slot->code = code;
  slot->limit = limit;
  slot->operand = operand;
  __threadfence_system();
  slot->sequence = target.sequence;
}
#define ep_raise(code, operand, value, limit) ep_raise_into(ep_fault, (code), (operand), (value), (limit))
)";

}  // namespace

ep_dialect_info cuda_dialect(const DeviceFacts& facts) {
  ep_dialect_info info{};
  info.dialect = EP_DIALECT_CUDA_C;
  info.version = CUDA_VERSION / 1000 * 1000;  // every NVRTC that the helper loads has at least this version
  info.features = EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_STORE_8 |
                  EP_DIALECT_FEATURE_STORE_16 | EP_DIALECT_FEATURE_SUBGROUPS | EP_DIALECT_FEATURE_BARRIERS;
  info.vector_bytes = widest_load;
  info.subgroup_least = info.subgroup_greatest = warp;
  info.group_items = static_cast<uint32_t>(facts.group_items);
  for (int axis = 0; axis < 3; ++axis) {
    info.group_dims[axis] = static_cast<uint32_t>(facts.group_dims[axis]);
    info.groups[axis] = static_cast<uint64_t>(facts.groups[axis]);
  }
  info.greatest_buffers = most_module_buffers;
  info.shared_bytes = static_cast<uint64_t>(facts.shared_bytes);
  info.parameter_bytes = most_parameter_bytes;
  return info;
}

std::string source_of(const ep_module_desc& desc) {
  std::string source = prefix;
  source += constants_of(desc);
  source += "#line 1 \"kernel\"\n";
  source += to_view(desc.text);
  return source;
}

}  // namespace tenon::provider::cuda
