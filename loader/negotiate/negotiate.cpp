#include "loader/negotiate/negotiate.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "loader/negotiate/table_buffer.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint64_t most_copy_granularity = 64;  // the host's blocks begin at multiples of it

const char* const author_remedy = "Report it to the provider's author.";

// A slot of a table that must not be NULL under a condition on the device.
struct Slot {
  const char* name;
  size_t offset;
  bool (*required)(const DeviceInfo& info, const ep_device_ops& ops);
};

bool always(const DeviceInfo&, const ep_device_ops&) { return true; }
bool never(const DeviceInfo&, const ep_device_ops&) { return false; }
bool asynchronous(const DeviceInfo& info, const ep_device_ops&) { return !info.synchronous(); }
bool with_peers(const DeviceInfo&, const ep_device_ops& ops) { return ops.peer_open != nullptr; }
bool with_graphs(const DeviceInfo&, const ep_device_ops& ops) { return ops.graph_capability != nullptr; }
bool with_lists(const DeviceInfo&, const ep_device_ops& ops) { return ops.command_list_begin != nullptr; }
bool with_modules(const DeviceInfo&, const ep_device_ops& ops) { return ops.module_create != nullptr; }
bool takes_memory(const DeviceInfo& info, const ep_device_ops&) { return info.memory_handles != 0; }
bool takes_streams(const DeviceInfo& info, const ep_device_ops&) { return info.stream_handles != 0; }
bool takes_semaphores(const DeviceInfo& info, const ep_device_ops&) { return info.semaphore_handles != 0; }
bool with_semaphores(const DeviceInfo&, const ep_device_ops& ops) { return ops.semaphore_import != nullptr; }
bool with_primitives(const DeviceInfo&, const ep_device_ops& ops) { return ops.primitive_create != nullptr; }

bool with_images(const DeviceInfo& info, const ep_device_ops&) {
  return std::any_of(info.pools.begin(), info.pools.end(),
                     [](const MemoryPool& pool) { return pool.flags & EP_POOL_FLAG_IMAGE; });
}

bool host_visible(const DeviceInfo& info, const ep_device_ops&) {
  return std::any_of(info.pools.begin(), info.pools.end(),
                     [](const MemoryPool& pool) { return pool.flags & EP_POOL_FLAG_HOST_VISIBLE; });
}

bool non_coherent(const DeviceInfo& info, const ep_device_ops&) {
  return std::any_of(info.pools.begin(), info.pools.end(), [](const MemoryPool& pool) {
    return (pool.flags & EP_POOL_FLAG_HOST_VISIBLE) && !(pool.flags & EP_POOL_FLAG_COHERENT);
  });
}

constexpr Slot device_slots[] = {
#define TENON_DEVICE_SLOT(name, required) {#name, offsetof(ep_device_ops, name), required},
#include "loader/negotiate/device_slots.def"
#undef TENON_DEVICE_SLOT
};

bool is_null(const void* table, size_t offset) {
  void* slot = nullptr;
  std::memcpy(&slot, static_cast<const unsigned char*>(table) + offset, sizeof slot);
  return slot == nullptr;
}

Status missing_slot(const std::string& what, const char* slot) {
  return Status(Code::invalid_argument, fmt::format("{} lacks the required function '{}'", what, slot), author_remedy)
      .with_rule("T03");
}

bool is_spoken(const ep_plugin_ops& ops) {
  return ops.abi_major == EP_ABI_MAJOR && EP_ABI_MINORS_AGREE(ops.abi_minor, EP_ABI_MINOR);
}

Status check_plugin_ops(const ep_plugin_ops& ops, const std::string& what) {
  if (!is_spoken(ops)) {
    return Status(Code::version,
                  fmt::format("{} is of ABI {}.{}, this host speaks {}.{}", what, ops.abi_major, ops.abi_minor,
                              EP_ABI_MAJOR, EP_ABI_MINOR),
                  "Build the provider against this Tenon; while the ABI is 0.x both must have the same minor version.")
        .with_rule("N02");
  }
  if (!ops.shutdown) return missing_slot(what, "shutdown");
  if (!ops.device_count) return missing_slot(what, "device_count");
  if (!ops.device_info) return missing_slot(what, "device_info");
  if (!ops.device_open) return missing_slot(what, "device_open");
  return {};
}

Status bad_info(const std::string& what, const std::string& reason) {
  return Status(Code::invalid_argument, fmt::format("{} {}", what, reason), author_remedy).with_rule("D05");
}

Status check_pools(const ep_device_info& raw, const std::string& what) {
  if (raw.pool_count == 0 || raw.pool_count > EP_MAX_POOLS) {
    return bad_info(what, fmt::format("claims {} memory pools; 1 to {} are possible", raw.pool_count, EP_MAX_POOLS));
  }
  for (uint32_t index = 0; index < raw.pool_count; ++index) {
    const ep_memory_pool_info& pool = raw.pools[index];
    if (!std::has_single_bit(pool.minimum_alignment)) {
      return bad_info(what, fmt::format("gives pool {} the minimum alignment {}, which is not a power of two", index,
                                        pool.minimum_alignment));
    }
    constexpr uint64_t no_images = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_STAGING;
    if ((pool.flags & EP_POOL_FLAG_IMAGE) != 0 && (index == 0 || (pool.flags & no_images) != 0)) {
      return bad_info(what, fmt::format("says that pool {} holds images, though {}", index,
                                        index == 0 ? "operands live there" : "the host reaches it"));
    }
    const uint64_t granularity = pool.copy_granularity;
    const uint64_t most = std::min(pool.minimum_alignment, most_copy_granularity);
    if (granularity != 0 && (!std::has_single_bit(granularity) || granularity > most)) {
      return bad_info(what, fmt::format("gives pool {} the copy granularity {}; a power of two up to {} is possible",
                                        index, granularity, most));
    }
  }
  return {};
}

Status check_device_ops(const DeviceInfo& info, const ep_device_ops& ops, const std::string& what) {
  for (const Slot& slot : device_slots) {
    if (slot.required(info, ops) && is_null(&ops, slot.offset)) return missing_slot(what, slot.name);
  }
  return {};
}

}  // namespace

Status check_table(const unsigned char* bytes, uint32_t known_size, uint32_t type, const std::string& what) {
  TableHeader header{};
  std::memcpy(&header, bytes, sizeof header);
  const uint32_t size = header.struct_size;
  if (header.struct_type != type) {
    return Status(Code::version,
                  fmt::format("{} is of struct type {}, but {} was requested", what, header.struct_type, type),
                  author_remedy)
        .with_rule("T01");
  }
  if (header.struct_size < sizeof header || header.struct_size > table_room || header.struct_size % 8 != 0) {
    return Status(Code::invalid_argument,
                  fmt::format("{} states a size of {} bytes; it must be a multiple of 8 from 16 to {}", what, size,
                              table_room),
                  author_remedy)
        .with_rule("T01");
  }
  for (uint32_t offset = known_size; offset < header.struct_size; ++offset) {
    if (bytes[offset] == 0) continue;
    return Status(Code::version,
                  fmt::format("{} has {} bytes and uses byte {}, this host knows {}", what, size, offset, known_size),
                  "Use a newer Tenon, or an older provider.")
        .with_rule("T02");
  }
  int links = 0;
  for (const void* next = header.next; next; ++links) {
    TableHeader extension{};
    std::memcpy(&extension, next, sizeof extension);
    if (links == 64)
      return Status(Code::invalid_argument, fmt::format("{} has a chain of extensions without end", what),
                    author_remedy)
          .with_rule("T02");
    if (extension.struct_type & extension_refuse_bit) {
      return Status(Code::unsupported,
                    fmt::format("{} has the extension {}, which is required but unknown to this host", what,
                                extension.struct_type & ~extension_refuse_bit),
                    "Use a newer Tenon.")
          .with_rule("T02");
    }
    next = extension.next;
  }
  return {};
}

Result<ep_plugin_ops> negotiate_plugin(const HostServices& host, ep_plugin_query_fn query) {
  const std::string& provider = host.provider();
  TableBuffer<ep_plugin_ops> buffer(EP_STRUCT_PLUGIN_OPS);
  TENON_RETURN_IF_ERROR(call_plugin(provider, EP_PLUGIN_QUERY_SYMBOL,
                                    [&](ep_error** error) { return query(host.table(), buffer.get(), error); }));
  const std::string what = fmt::format("the table of the provider '{}'", provider);
  TENON_ASSIGN_OR_RETURN(const ep_plugin_ops ops, buffer.accept(what));
  const Status checked = check_plugin_ops(ops, what);
  if (checked.ok()) return ops;
  if (is_spoken(ops) && ops.shutdown) {
    const Status ignored = call_plugin(provider, "shutdown", [&](ep_error**) {
      ops.shutdown(ops.plugin);
      return EP_STATUS_OK;
    });
  }
  return checked;
}

Result<DeviceInfo> query_device_info(const std::string& provider, const ep_plugin_ops& plugin, uint32_t index) {
  TableBuffer<ep_device_info> buffer(EP_STRUCT_DEVICE_INFO);
  TENON_RETURN_IF_ERROR(call_plugin(provider, "device_info", [&](ep_error** error) {
    return plugin.device_info(plugin.plugin, index, buffer.get(), error);
  }));
  const std::string what = fmt::format("the description of device {} of the provider '{}'", index, provider);
  TENON_ASSIGN_OR_RETURN(const ep_device_info raw, buffer.accept(what));
  DeviceInfo info;
  info.name = view_of(raw.name);
  info.fingerprint = view_of(raw.fingerprint);
  info.unusable_reason = view_of(raw.unusable_reason);
  info.remedy = view_of(raw.remedy);
  info.device_class = raw.device_class;
  info.flags = raw.flags;
  info.dtypes = raw.dtypes;
  info.threads = raw.threads;
  info.memory_handles = raw.memory_handles;
  info.stream_handles = raw.stream_handles;
  info.semaphore_handles = raw.semaphore_handles;
  info.device_handles = raw.device_handles;
  info.native_memory = raw.native_memory;
  std::copy(std::begin(raw.uuid), std::end(raw.uuid), info.uuid.begin());
  const bool has_address = std::any_of(std::begin(raw.pci), std::end(raw.pci), [](int64_t part) { return part != 0; });
  if (has_address) std::copy(std::begin(raw.pci), std::end(raw.pci), info.pci.begin());
  if (!info.usable()) return info;
  if (raw.device_class < EP_DEVICE_CLASS_CPU || raw.device_class > EP_DEVICE_CLASS_ACCELERATOR) {
    return bad_info(what, fmt::format("gives it the class {}, which is not one of the known ones", raw.device_class));
  }
  TENON_RETURN_IF_ERROR(check_pools(raw, what));
  info.accuracy = {raw.portable_dtypes, raw.relaxed_dtypes, raw.flushed_dtypes};
  if (const std::string why = why_no_accuracy(info.accuracy); !why.empty()) {
    return Status(Code::invalid_argument, fmt::format("{} {}", what, why), author_remedy).with_rule("B01");
  }
  for (uint32_t pool = 0; pool < raw.pool_count; ++pool) {
    const ep_memory_pool_info& from = raw.pools[pool];
    info.pools.push_back({from.flags, from.size, from.minimum_alignment, from.preferred_block, from.largest_allocation,
                          from.maximum_allocations, std::max<uint64_t>(1, from.copy_granularity)});
  }
  return info;
}

Status open_device_table(const std::string& provider, const ep_plugin_ops& plugin, const ep_adopt_desc* adopt,
                         OpenDevice& device) {
  TableBuffer<ep_device_ops> buffer(EP_STRUCT_DEVICE_OPS);
  ep_device* handle = nullptr;
  TENON_RETURN_IF_ERROR(call_plugin(provider, adopt == nullptr ? "device_open" : "device_adopt", [&](ep_error** error) {
    if (adopt == nullptr) return plugin.device_open(plugin.plugin, device.index, &handle, buffer.get(), error);
    return plugin.device_adopt(plugin.plugin, device.index, adopt, &handle, buffer.get(), error);
  }));
  const std::string what = fmt::format("the table of the device {}", device.spelling);
  const Result<ep_device_ops> ops = buffer.accept(what);
  const Status checked = ops.ok() ? check_device_ops(device.info, ops.value(), what) : ops.status();
  if (checked.ok()) {
    device.handle = handle;
    device.ops = ops.value();
    return {};
  }
  device.info.unusable_reason = checked.message();
  device.info.remedy = checked.remedy();
  if (!ops.ok() || !ops->device_close) return checked;
  const Status ignored = call_plugin(provider, "device_close", [&](ep_error**) {
    ops->device_close(handle);
    return EP_STATUS_OK;
  });
  return checked;
}

}  // namespace tenon::loader
