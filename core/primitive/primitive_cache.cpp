// The primitives of all devices: one cache per device, and a set of all primitives that exist.
#include "core/primitive/primitive_cache.h"

#include <malloc.h>

#include <cstring>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/background/stop.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

constexpr uint64_t kByteLimit = uint64_t{256} << 20;
constexpr uint64_t kTrimBytes = kByteLimit / 8;
constexpr uint64_t kEntryBytes = 1024;  // memory of an entry without its primitive: key, list and map nodes

size_t used_bytes(const ep_primitive_desc& desc) {
  return offsetof(ep_primitive_desc, operands) + desc.operand_count * sizeof(ep_operand_desc);
}

void remember(Primitive* primitive);

// The primitives of one device, most recently used first, and the descriptors that the device refused only at creation.
class PrimitiveCache {
 public:
  Result<Primitive*> get(DeviceState* device, const ep_primitive_desc& desc) {
    const std::string key(reinterpret_cast<const char*>(&desc), used_bytes(desc));
    {
      std::lock_guard lock(mutex_);
      if (auto found = index_.find(key); found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return hand_out(*found->second);
      }
    }
    return insert(key, create(device, desc));
  }

  PrimitiveCacheStats stats() {
    std::lock_guard lock(mutex_);
    return {entries_.size(), bytes_, kByteLimit};
  }

  void clear() { shrink_to(0); }

 private:
  struct Entry {
    std::string key;
    Primitive* primitive = nullptr;
    Status refusal;
    uint64_t bytes = 0;
  };

  static Result<Primitive*> hand_out(const Entry& entry) {
    if (entry.primitive == nullptr) return entry.refusal;
    entry.primitive->retain();
    return entry.primitive;
  }

  Result<Primitive*> insert(const std::string& key, Result<Primitive*> made) {
    if (!made.ok() && made.status().code() != Code::unsupported) return made;
    Primitive* surplus = nullptr;
    Result<Primitive*> answer = Status();
    {
      std::lock_guard lock(mutex_);
      if (auto found = index_.find(key); found != index_.end()) {
        if (made.ok()) surplus = made.value();
        answer = hand_out(*found->second);
      } else {
        Entry entry{key, made.ok() ? made.value() : nullptr, made.status(), kEntryBytes};
        if (entry.primitive != nullptr) entry.bytes += entry.primitive->host_bytes + entry.primitive->device_bytes;
        bytes_ += entry.bytes;
        entries_.push_front(std::move(entry));
        index_.emplace(entries_.front().key, entries_.begin());
        answer = hand_out(entries_.front());
      }
    }
    if (surplus != nullptr) surplus->release();
    shrink_to(kByteLimit);
    return answer;
  }

  void shrink_to(uint64_t limit) {
    std::list<Entry> dropped;
    bool trim = false;
    {
      std::lock_guard lock(mutex_);
      while (bytes_ > limit && !entries_.empty()) {
        bytes_ -= entries_.back().bytes;
        dropped_bytes_ += entries_.back().bytes;
        index_.erase(entries_.back().key);
        dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
      }
      trim = dropped_bytes_ >= kTrimBytes;
      if (trim) dropped_bytes_ = 0;
    }
    for (Entry& entry : dropped) {
      if (entry.primitive != nullptr) entry.primitive->release();
    }
    if (trim) give_back_free_pages();
  }

  // Primitives are many small allocations of different ages, so free pages between them must be returned explicitly.
  static void give_back_free_pages() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
  }

  // Asks the provider once.
  static Status ask(DeviceState* device, const ep_primitive_desc& desc, ep_primitive** out_primitive,
                    ep_primitive_info* info) {
    *info = {};
    info->struct_size = sizeof *info;
    info->struct_type = EP_STRUCT_PRIMITIVE_INFO;
    const std::string doing = fmt::format("creating a primitive on {}", device->opened->spelling);
    ep_error* error = nullptr;
    const auto create = [&](ep_error** out) {
      return device->ops.primitive_create(device->handle, &desc, out_primitive, info, out);
    };
    const ep_status code = stoppable(create, &error);
    const Status status = loader::take_error(code, error, doing);
    return code == EP_STATUS_CANCELLED ? cancelled_error(status, doing) : status;
  }

  // Checks that a packed operand is constant; no launch could pass another one packed.
  static Status check_packing(const DeviceState* device, const ep_primitive_desc& desc, const ep_primitive_info& info) {
    if (info.pack_operand == 0) return {};
    const uint32_t packed = info.pack_operand - 1;
    const bool constant = packed < desc.operand_count && (desc.operands[packed].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
    if (constant && info.pack_bytes != 0 && device->ops.primitive_pack != nullptr) return {};
    return Status(
        Code::internal,
        fmt::format(
            "{} requests that operand {} of a primitive be packed into {} bytes; only a constant operand can be "
            "packed, into at least 1 byte, by a device that has primitive_pack.",
            device->opened->spelling, packed, info.pack_bytes));
  }

  // If the device has no memory for the primitive, releases the caches and asks the device once more (rule P03).
  Result<Primitive*> create(DeviceState* device, const ep_primitive_desc& desc) {
    ep_primitive_info info;
    ep_primitive* handle = nullptr;
    Status made = ask(device, desc, &handle, &info);
    if (made.code() == Code::out_of_device_memory) {
      clear();
      device->allocator->recover();
      made = ask(device, desc, &handle, &info);
    }
    TENON_RETURN_IF_ERROR(made);
    if (const Status packing = check_packing(device, desc, info); !packing.ok()) {
      device->ops.primitive_destroy(device->handle, handle);
      return packing;
    }
    auto* primitive = new Primitive;
    primitive->device = device;
    primitive->handle = handle;
    primitive->tier = tier_kept(desc, device->opened->info.accuracy);
    primitive->implementation.assign(info.implementation.data ? info.implementation.data : "",
                                     info.implementation.size);
    primitive->host_bytes = info.host_bytes;
    primitive->device_bytes = info.device_bytes;
    primitive->workspace_bytes = info.workspace_bytes;
    primitive->scratch_bytes = info.scratch_bytes;
    primitive->pack_operand = static_cast<int32_t>(info.pack_operand) - 1;
    primitive->pack_bytes = info.pack_bytes;
    primitive->pack_layout = info.pack_layout;
    primitive->dynamic = descriptor::has_any(desc);
    primitive->dynamic_workspace = primitive->dynamic && device->ops.primitive_workspace != nullptr &&
                                   (info.flags & EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE) == 0;
    remember(primitive);
    return primitive;
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  uint64_t bytes_ = 0;
  uint64_t dropped_bytes_ = 0;  // since pages were last returned
};

PrimitiveCache& cache_of(DeviceState* device) {
  static auto* mutex = new std::mutex;
  static auto* caches = new std::unordered_map<DeviceState*, PrimitiveCache>;
  std::lock_guard lock(*mutex);
  return (*caches)[device];
}

// All primitives that exist. Choice tables can hold a primitive longer than the cache does, but none outlives its
// device.
struct LivePrimitives {
  std::mutex mutex;
  std::unordered_set<Primitive*> all;
};

LivePrimitives& live_primitives() {
  static auto* live = new LivePrimitives;
  return *live;
}

void remember(Primitive* primitive) {
  std::lock_guard lock(live_primitives().mutex);
  live_primitives().all.insert(primitive);
}

// Opens the dims and strides that the device does not need. Strides of 0 and 1 stay fixed, and so do constants, because
// the device may need to know how many bytes it packs.
void open_dims(ep_primitive_desc* desc, uint64_t flags) {
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    ep_operand_desc& operand = desc->operands[i];
    if ((operand.flags & EP_OPERAND_FLAG_CONSTANT) != 0) continue;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      operand.dims[axis] = EP_ANY;
      if ((flags & EP_SUPPORT_FLAG_ANY_STRIDES) != 0 && operand.strides[axis] > 1) operand.strides[axis] = EP_ANY;
    }
  }
}

bool has_limits(const ep_support_info& info) {
  return (info.greatest_dim | info.greatest_elements | info.greatest_bytes) != 0;
}

// True if every operand of `desc` is within the limits of `info` for open dims.
bool within_limits(const ep_primitive_desc& desc, const ep_support_info& info) {
  const auto fits = [](uint64_t size, uint64_t limit) { return limit == 0 || size <= limit; };
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    int64_t elements = 1;
    int64_t reach = 1;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      elements *= operand.dims[axis];
      reach += (operand.dims[axis] - 1) * operand.strides[axis];
      if (!fits(static_cast<uint64_t>(operand.dims[axis]), info.greatest_dim)) return false;
    }
    const int64_t bytes = dtype_bytes(static_cast<DType>(operand.dtype), reach);
    if (!fits(static_cast<uint64_t>(elements), info.greatest_elements)) return false;
    if (!fits(static_cast<uint64_t>(bytes), info.greatest_bytes)) return false;
  }
  return true;
}

}  // namespace

void Primitive::release(int32_t references) {
  if (count.fetch_sub(references, std::memory_order_acq_rel) != references) return;
  ep_primitive* last = nullptr;
  {
    std::lock_guard lock(live_primitives().mutex);
    live_primitives().all.erase(this);
    last = std::exchange(handle, nullptr);
  }
  if (last != nullptr) device->ops.primitive_destroy(device->handle, last);
  delete this;
}

void destroy_primitives(DeviceState* device) {
  clear_primitive_cache(device);
  std::lock_guard lock(live_primitives().mutex);
  for (Primitive* primitive : live_primitives().all) {
    if (primitive->device != device) continue;
    device->ops.primitive_destroy(device->handle, std::exchange(primitive->handle, nullptr));
  }
}

Result<Resolved> resolve_primitive(DeviceState* device, const ep_primitive_desc& desc, const ep_scalar* scalars,
                                   uint32_t scalar_count, Sizes sizes) {
  ep_support_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_primitive_desc wanted = desc;
  const std::string why_below = settle_demand(&wanted, device->opened->info.accuracy);
  ep_error* error = nullptr;
  const ep_status code = device->ops.primitive_support(device->handle, &wanted, &info, &error);
  const Status support = loader::take_error(code, error, {});
  if (!why_below.empty() &&
      (support.ok() ? (info.flags & EP_SUPPORT_FLAG_PRECISION) == 0 : support.code() == Code::unsupported)) {
    return Status(Code::unsupported, why_below + ".");
  }
  TENON_RETURN_IF_ERROR(support);
  if (wanted.precision == EP_PRECISION_RELAXED && (info.flags & EP_SUPPORT_FLAG_RELAXED) == 0) {
    wanted.precision = EP_PRECISION_DEFAULT;
  }

  Resolved resolved;
  const bool open = sizes == Sizes::open && !descriptor::has_opaque(desc) &&
                    (info.flags & EP_SUPPORT_FLAG_ANY_DIMS) != 0 && within_limits(desc, info);
  if (open) open_dims(&wanted, info.flags);
  resolved.any_strides = open && (info.flags & EP_SUPPORT_FLAG_ANY_STRIDES) != 0;
  resolved.limited = has_limits(info);
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS; ++slot) {
    if ((info.baked_scalars >> slot & 1) == 0 || slot >= scalar_count) continue;
    wanted.baked_scalars |= 1u << slot;
    wanted.scalars[slot] = scalars[slot];
    resolved.baked = true;
  }
  TENON_ASSIGN_OR_RETURN(resolved.primitive, cache_of(device).get(device, wanted));
  std::copy(std::begin(info.alignment), std::end(info.alignment), resolved.alignment);
  return resolved;
}

PrimitiveCacheStats primitive_cache_stats(DeviceState* device) { return cache_of(device).stats(); }
void clear_primitive_cache(DeviceState* device) { cache_of(device).clear(); }

}  // namespace tenon
