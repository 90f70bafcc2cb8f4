#include "providers/vulkan/modules/source.h"

#include <fmt/core.h>

#include <algorithm>

#include "providers/vulkan/kernels/pipeline.h"
#include "sdk/provider/error.h"
#include "sdk/provider/modules/source.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t most_buffers = 256;
constexpr uint64_t most_parameter_bytes = 65536;
constexpr uint64_t word = 8;

// EpFaultSlot mirrors FaultSlot of queue/command_stream.h.
constexpr const char* prefix = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_control_flow_attributes : require
)";
constexpr const char* narrow = R"(#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
)";
constexpr const char* subgroups = R"(#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
#extension GL_KHR_shader_subgroup_arithmetic : require
)";
constexpr const char* faults = R"(#define EP_FAULT_PARAMETER
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer EpFaultSlot {
  uint taken;
  int code;
  int64_t value;
  int64_t limit;
  int operand;
  int reserved;
};
void ep_raise_into(uint64_t address, int code, int operand, int64_t value, int64_t limit) {
  EpFaultSlot slot = EpFaultSlot(address);
  if (atomicExchange(slot.taken, 1u) != 0u) return;
  slot.code = code;
  slot.operand = operand;
  slot.value = value;
  slot.limit = limit;
}
#define ep_raise(code, operand, value, limit) ep_raise_into(ep_fault, int(code), int(operand), int64_t(value), int64_t(limit))
)";

// The line that replaces EP_PARAMETERS.
std::string declarations(const ep_module_entry& entry) {
  const uint32_t words = words_of(entry);
  const std::string buffers = fmt::format("uint64_t ep_buffers[{}];", words);
  constexpr const char* push = "layout(push_constant, scalar) uniform EpPush";
  constexpr const char* memory =
      "layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer EpArguments";
  const bool any = entry.parameter_bytes != 0;
  const char* const parameters = any ? "Parameters ep_parameters;" : "";
  switch (placement_of(entry)) {
    case Placement::pushed: return fmt::format("{} {{ uint64_t ep_fault; {} {} }};", push, buffers, parameters);
    case Placement::parameters:
      return fmt::format("{} {{ Parameters value; }}; {} {{ uint64_t ep_fault; {} EpArguments ep_arguments; }};",
                         memory, push, buffers);
    case Placement::all: break;
  }
  return fmt::format("{} {{ uint64_t buffers[{}]; {} }}; {} {{ uint64_t ep_fault; EpArguments ep_arguments; }};",
                     memory, words, any ? "Parameters value;" : "", push);
}

std::string names(const ep_module_entry& entry) {
  const Placement placement = placement_of(entry);
  std::string lines;
  if (placement == Placement::all) lines += "#define ep_buffers ep_arguments.buffers\n";
  if (placement != Placement::pushed) lines += "#define ep_parameters ep_arguments.value\n";
  return lines;
}

}  // namespace

uint32_t words_of(const ep_module_entry& entry) {
  const uint32_t workspace = (entry.flags & EP_ENTRY_FLAG_WORKSPACE) != 0 ? 1 : 0;
  const uint32_t scratch = (entry.flags & EP_ENTRY_FLAG_SCRATCH) != 0 ? 1 : 0;
  return std::max(entry.buffer_count + workspace + scratch, 1u);
}

Placement placement_of(const ep_module_entry& entry) {
  const uint64_t buffers = words_of(entry) * word;
  if (word + buffers + entry.parameter_bytes <= push_bytes) return Placement::pushed;
  const bool fits = word + buffers + word <= push_bytes && entry.parameter_bytes != 0;
  return fits ? Placement::parameters : Placement::all;
}

ep_dialect_info glsl_dialect(const Context& context) {
  const PhysicalDevice& physical = *context.physical;
  const VkPhysicalDeviceLimits& limits = context.limits();
  ep_dialect_info info{};
  info.dialect = EP_DIALECT_GLSL;
  info.version = 4600;
  info.features = EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_BARRIERS;
  if (physical.features.narrow) info.features |= EP_DIALECT_FEATURE_STORE_8 | EP_DIALECT_FEATURE_STORE_16;
  // On an application's device, only the features that the provider requires are known to be enabled.
  if (physical.features.float16 && !context.adopted) info.features |= EP_DIALECT_FEATURE_F16;
  if (physical.features.float64 && !context.adopted) info.features |= EP_DIALECT_FEATURE_F64;
  if (physical.facts.subgroups) {
    info.features |= EP_DIALECT_FEATURE_SUBGROUPS;
    info.subgroup_least = info.subgroup_greatest = physical.facts.subgroup;
  }
  info.vector_bytes = context.packs ? 16 : 0;
  info.group_items = limits.maxComputeWorkGroupInvocations;
  for (int axis = 0; axis < 3; ++axis) {
    info.group_dims[axis] = limits.maxComputeWorkGroupSize[axis];
    info.groups[axis] = limits.maxComputeWorkGroupCount[axis];
  }
  info.greatest_buffers = most_buffers;
  info.shared_bytes = limits.maxComputeSharedMemorySize;
  info.parameter_bytes = most_parameter_bytes;
  return info;
}

std::string source_of(const Context& context, const ep_module_desc& desc) {
  const ep_module_entry& entry = desc.entries[0];
  std::string source = prefix;
  if (context.physical->features.narrow) source += narrow;
  if (context.physical->facts.subgroups) source += subgroups;
  source += fmt::format("layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;\n", entry.group[0],
                        entry.group[1], entry.group[2]);
  if ((entry.flags & EP_ENTRY_FLAG_FAULTS) != 0) source += faults;
  source += names(entry);
  source += fmt::format("#define EP_PARAMETERS {}\n", declarations(entry));
  source += constants_of(desc);
  source += "#line 1\n";
  source += to_view(desc.text);
  source += fmt::format("\nvoid main() {{ {}(); }}\n", to_view(entry.name));
  return source;
}

}  // namespace tenon::provider::vulkan
