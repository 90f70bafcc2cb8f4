#include <fmt/core.h>

#include <cstring>

#include "providers/cuda/device.h"
#include "sdk/provider/plugin.h"

EP_PLUGIN_NOTE("cuda", "0.1.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

namespace tenon::provider::cuda {
namespace {

constexpr int least_capability = 75;
constexpr uint64_t preferred_block = 32 * 1024 * 1024;

int attribute(const Driver& driver, CUdevice number, CUdevice_attribute which) {
  int value = 0;
  return driver.device_get_attribute(&value, which, number) == CUDA_SUCCESS ? value : 0;
}

void describe_limits(const Driver& driver, DeviceFacts* facts) {
  const auto ask = [&](CUdevice_attribute which) { return attribute(driver, facts->number, which); };
  facts->capability =
      10 * ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts->processors = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts->threads_per_processor = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts->group_items = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  facts->shared_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  facts->shared_bytes_on_demand = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  constexpr CUdevice_attribute dims[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                         CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  constexpr CUdevice_attribute grids[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                          CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  for (int axis = 0; axis < 3; ++axis) {
    facts->group_dims[axis] = ask(dims[axis]);
    facts->groups[axis] = ask(grids[axis]);
  }
  facts->integrated = ask(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  facts->memory_pools = ask(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  facts->pci[0] = ask(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  facts->pci[1] = ask(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  facts->pci[2] = ask(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  facts->pci[3] = 0;
  if (facts->capability < least_capability) {
    facts->unusable_reason = fmt::format("It has compute capability {}.{}, and 7.5 is the least that is supported.",
                                         facts->capability / 10, facts->capability % 10);
    facts->remedy = "Choose another device.";
  } else if (ask(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 0) {
    facts->unusable_reason = "It does not share the host's address space.";
    facts->remedy = "Use a 64-bit system, and a driver without virtualisation of the GPU's memory.";
  } else if (ask(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED) {
    facts->unusable_reason = "Its compute mode prohibits contexts.";
    facts->remedy = "nvidia-smi --compute-mode=DEFAULT allows them.";
  }
}

DeviceFacts describe(const Driver& driver, int index) {
  DeviceFacts facts;
  facts.index = index;
  char name[256] = {};
  CUresult result = driver.device_get(&facts.number, index);
  if (result == CUDA_SUCCESS) result = driver.device_get_name(name, sizeof name - 1, facts.number);
  if (result == CUDA_SUCCESS) result = driver.device_get_uuid(&facts.uuid, facts.number);
  size_t memory = 0;
  if (result == CUDA_SUCCESS) result = driver.device_total_mem(&memory, facts.number);
  facts.name = name[0] != '\0' ? name : fmt::format("CUDA device {}", index);
  facts.memory = memory;
  if (result != CUDA_SUCCESS) {
    facts.unusable_reason = fmt::format("The driver cannot describe it: {}.", driver.text_of(result));
    facts.remedy = "Check with nvidia-smi if it has failed.";
    return facts;
  }
  describe_limits(driver, &facts);
  facts.fingerprint = fmt::format("{}, sm_{}, driver {}, built by CUDA {}", facts.name, facts.capability,
                                  version_text(driver.version), version_text(CUDA_VERSION));
  return facts;
}

// Loads the driver at the first call. Errors: the driver is unusable.
ep_status load(ep_plugin* plugin, ep_error** error) {
  std::call_once(plugin->loaded, [plugin] {
    plugin->driver = load_driver();
    for (int i = 0; i < plugin->driver.device_count; ++i) plugin->devices.push_back(describe(plugin->driver, i));
  });
  const DriverFailure& failure = plugin->driver.failure;
  if (failure.status == EP_STATUS_OK) return EP_STATUS_OK;
  return fail_text(plugin->host, error, failure.status, failure.sentence, failure.remedy);
}

ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  if (const ep_status status = load(plugin, error); status != EP_STATUS_OK) return status;
  *out_count = static_cast<uint32_t>(plugin->devices.size());
  return EP_STATUS_OK;
}

// Errors: those of load; there is no device `index`.
ep_status check_device(ep_plugin* plugin, uint32_t index, ep_error** error) {
  if (const ep_status status = load(plugin, error); status != EP_STATUS_OK) return status;
  return check_index(plugin->host, "cuda", plugin->devices.size(), index, error);
}

void describe_pools(const DeviceFacts& facts, ep_device_info* info) {
  info->pool_count = 2;
  ep_memory_pool_info& memory = info->pools[device_pool];
  memory.flags = EP_POOL_FLAG_DEVICE_LOCAL;
  memory.size = facts.memory;
  memory.minimum_alignment = block_alignment;
  memory.preferred_block = preferred_block;
  ep_memory_pool_info& pinned = info->pools[pinned_pool];
  pinned.flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED | EP_POOL_FLAG_STAGING;
  pinned.minimum_alignment = block_alignment;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (const ep_status status = check_device(plugin, index, error); status != EP_STATUS_OK) return status;
  const DeviceFacts& facts = plugin->devices[index];
  ep_device_info info{};
  info.name = to_ep_string(facts.name);
  info.fingerprint = to_ep_string(facts.fingerprint);
  info.unusable_reason = to_ep_string(facts.unusable_reason);
  info.remedy = to_ep_string(facts.remedy);
  info.device_class = facts.integrated ? EP_DEVICE_CLASS_INTEGRATED : EP_DEVICE_CLASS_DISCRETE;
  info.dtypes = every_dtype;
  info.memory_handles = imported_memory;
  info.stream_handles = handle_bit(EP_HANDLE_CUDA_STREAM);
  info.semaphore_handles = imported_semaphores;
  info.native_memory = EP_HANDLE_CUDA_POINTER;
  static_assert(sizeof info.uuid == sizeof facts.uuid.bytes);
  std::memcpy(info.uuid, facts.uuid.bytes, sizeof info.uuid);
  std::memcpy(info.pci, facts.pci, sizeof info.pci);
  info.threads = static_cast<uint32_t>(facts.processors) * static_cast<uint32_t>(facts.threads_per_processor);
  describe_pools(facts, &info);
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  if (const ep_status status = check_device(plugin, index, error); status != EP_STATUS_OK) return status;
  const DeviceFacts& facts = plugin->devices[index];
  if (!facts.unusable_reason.empty()) {
    return fail_text(plugin->host, error, EP_STATUS_UNSUPPORTED, facts.unusable_reason, facts.remedy);
  }
  const ep_status status = open_device(plugin->host, plugin->driver, facts, out_device, error);
  if (status == EP_STATUS_OK) fill(out_ops, device_ops());
  return status;
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
}

}  // namespace
}  // namespace tenon::provider::cuda

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::cuda::fill_plugin);
}
