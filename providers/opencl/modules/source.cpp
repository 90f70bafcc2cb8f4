#include "providers/opencl/modules/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "providers/opencl/modules/head.h"
#include "sdk/provider/error.h"
#include "sdk/provider/modules/source.h"

namespace tenon::provider::opencl {
namespace {

constexpr uint64_t most_parameter_bytes = 65536;

// ep_fault_slot mirrors FaultLog::Slot of queue/fault_log.h.
constexpr const char* prefix = R"(#pragma OPENCL FP_CONTRACT OFF
#ifdef EP_HAS_FLOAT64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef EP_HAS_FLOAT16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
struct ep_fault_slot { volatile uint taken; int code; long value; long limit; int operand; int reserved; };
#define EP_FAULT_PARAMETER __global struct ep_fault_slot* ep_faults
static inline void ep_raise_into(__global struct ep_fault_slot* slot, int code, int operand, long value, long limit) {
  if (atomic_cmpxchg((volatile __global uint*)&slot->taken, 0u, 1u) != 0u) return;
  slot->code = code;
  slot->operand = operand;
  slot->value = value;
  slot->limit = limit;
}
#define ep_raise(code, operand, value, limit) ep_raise_into(ep_faults, (code), (operand), (value), (limit))
)";

uint64_t most_buffers_of(const ep_module_desc& desc) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < desc.entry_count; ++i) most = std::max<uint64_t>(most, buffers_of(desc.entries[i]));
  return most;
}

// Bytes of an entry's arguments without its parameters: a pointer per buffer and for the faults, and the words.
uint64_t argument_bytes(uint64_t buffers) { return (buffers + 1) * 8 + (buffers + 1) * 8; }

}  // namespace

ep_dialect_info opencl_dialect(const PhysicalDevice& device) {
  ep_dialect_info info{};
  info.dialect = EP_DIALECT_OPENCL_C;
  info.version = 1020;  // the version that texts are compiled as, even if the device supports more
  info.compiler = to_ep_string(device.compiler);
  info.features =
      EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_STORE_8 | EP_DIALECT_FEATURE_STORE_16 | EP_DIALECT_FEATURE_BARRIERS;
  if (device.f64) info.features |= EP_DIALECT_FEATURE_F64;
  if (device.f16) info.features |= EP_DIALECT_FEATURE_F16;
  // Compilers for processors vectorise over work-items; vectors inside a work-item do not help them.
  info.vector_bytes = (device.type & CL_DEVICE_TYPE_CPU) != 0 ? 0 : 16;
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  info.group_items = static_cast<uint32_t>(std::min(device.work_group, most));
  for (int axis = 0; axis < 3; ++axis) {
    info.group_dims[axis] = static_cast<uint32_t>(std::min(device.group_dims[axis], most));
    info.groups[axis] = most;
  }
  info.greatest_buffers = most_module_buffers;
  while (argument_bytes(info.greatest_buffers) + 8 > device.parameter_bytes) --info.greatest_buffers;
  info.shared_bytes = device.local_memory;
  info.parameter_bytes = most_parameter_bytes;
  return info;
}

bool by_reference(const PhysicalDevice& device, const ep_module_desc& desc, const ep_module_entry& entry) {
  return argument_bytes(most_buffers_of(desc)) + entry.parameter_bytes > device.parameter_bytes;
}

uint64_t launch_words(const ep_module_desc& desc) { return (1 + std::max<uint64_t>(most_buffers_of(desc), 1)) * 8; }

std::string make_source(const PhysicalDevice& device, const ep_module_desc& desc, std::string* out_source) {
  std::string text(to_view(desc.text));
  for (uint32_t i = 0; i < desc.entry_count; ++i) {
    const std::string wrong = rewrite_head(desc.entries[i], by_reference(device, desc, desc.entries[i]), &text);
    if (!wrong.empty()) return wrong;
  }
  *out_source = prefix;
  *out_source += fmt::format("struct ep_launch_words {{ ulong slot; ulong offsets[{}]; }};\n",
                             std::max<uint64_t>(most_buffers_of(desc), 1));
  *out_source += constants_of(desc) + "#line 1 \"kernel\"\n" + text;
  return {};
}

}  // namespace tenon::provider::opencl
