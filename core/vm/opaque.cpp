#include "core/vm/opaque.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/device/device_state.h"
#include "core/primitive/primitive_cache.h"
#include "core/vm/vm.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon {

// Sees the storage behind a SharedStorage.
class OpaqueAccess {
 public:
  static Storage* of(SharedStorage storage) { return storage.storage_; }
};

namespace vm {
namespace {

constexpr OpName kConvert{"copy (layout)"};

struct LayoutNeeds {
  std::string name;
  uint64_t bytes = 0;
  bool image = false;
};

Result<LayoutNeeds> needs_of(const DeviceState* device, const Layout& layout) {
  ep_layout_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_LAYOUT_INFO;
  ep_error* error = nullptr;
  const ep_status code = device->ops.layout_info(device->handle, &layout.operand(), &info, &error);
  TENON_RETURN_IF_ERROR(loader::take_error(
      code, error, fmt::format("asking {} about its layout {}", device->opened->spelling, layout.token())));
  return LayoutNeeds{std::string(info.name.data != nullptr ? info.name.data : "", info.name.size), info.bytes,
                     info.pool != 0};
}

// The copy of `layout` from or to row-major elements.
ep_primitive_desc conversion(const Layout& layout, bool to_layout) {
  ep_operand_desc plain = layout.operand();
  const Dims strides = contiguous_strides(layout.dims());
  std::copy(strides.begin(), strides.end(), plain.strides);
  plain.flags = 0;
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_copy;
  desc.operand_count = 2;
  desc.operands[0] = to_layout ? layout.operand() : plain;
  desc.operands[0].role = EP_ROLE_DST;
  desc.operands[1] = to_layout ? plain : layout.operand();
  desc.operands[1].role = EP_ROLE_SRC;
  return desc;
}

// Launches the conversion of `src` into `dst`; one of the two holds the plain bytes.
Status convert(Storage* dst, Storage* src, const Layout& layout, bool to_layout) {
  DeviceState* device = dst->device;
  TENON_ASSIGN_OR_RETURN(const LayoutNeeds needs, needs_of(device, layout));
  TENON_ASSIGN_OR_RETURN(const Resolved resolved,
                         resolve_primitive(device, conversion(layout, to_layout), nullptr, 0, Sizes::numbers));
  Primitive* primitive = resolved.primitive;
  const Operand operands[] = {Operand(dst, 0, true, true), Operand(src, 0, false, false)};
  OpLaunch request;
  request.primitive = primitive;
  request.operands = operands;
  request.workspace_bytes = primitive->workspace_bytes;
  request.op = &kConvert;
  request.stream = current_stream(device);
  const Status status = launch(request, {});
  const auto bytes = static_cast<uint64_t>(dtype_bytes(layout.dtype(), element_count(layout.dims())));
  if (status.ok()) note_conversion({device, needs.name, to_layout, primitive->implementation, bytes});
  primitive->release();
  return status;
}

// The values of `storage`; creates the object if there is none.
OpaqueValues& values_of(Storage* storage) {
  OpaqueValues* found = storage->opaque.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto made = std::make_unique<OpaqueValues>();
  if (storage->opaque.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *found;
}

// The first value that is not stale, or null. The caller holds the lock.
const OpaqueValue* find_true(const Storage* storage, const OpaqueValues& all, const Layout* layout) {
  const uint64_t version = storage->version.load(std::memory_order_relaxed);
  const auto found = std::find_if(all.values.begin(), all.values.end(), [&](const OpaqueValue& value) {
    return value.version == version && (layout == nullptr || value.layout == *layout);
  });
  return found != all.values.end() ? &*found : nullptr;
}

bool has_block(const Storage* storage) { return storage->block.memory != nullptr; }

// The bytes of `storage`, which has no block, in a second storage made from `value`. If all bytes will be overwritten,
// they are not converted.
Result<StorageOwner> look(const Storage* storage, const OpaqueValue& value, Use use) {
  TENON_ASSIGN_OR_RETURN(Storage * made, Storage::make(storage->device, storage->bytes));
  StorageOwner plain(made);
  if (use != Use::overwrite) TENON_RETURN_IF_ERROR(convert(made, value.storage.get(), value.layout, false));
  return plain;
}

}  // namespace

Operand::Operand(SharedStorage of, uint64_t at, bool writes, bool wholly)
    : Operand(value_or_throw(of.plain(use_of(writes, wholly))), at, writes, wholly) {}

Status settle(SharedStorage storage, bool write, bool whole) {
  TENON_ASSIGN_OR_RETURN(Storage * plain, storage.plain(Operand::use_of(write, whole)));
  return settle(plain, write, whole);
}

Result<Storage*> plain_storage(Storage* storage, Use use) {
  OpaqueValues& all = *storage->opaque.load(std::memory_order_acquire);
  if (all.source) {
    TENON_RETURN_IF_ERROR(read_here(storage));
    return storage;
  }
  std::vector<OpaqueValue> forgotten;  // dropped outside the lock
  std::optional<OpaqueValue> contents;
  {
    std::lock_guard lock(all.mutex);
    if (!has_block(storage) && !all.plain) contents = all.values.front();
    if (!contents && use != Use::read) forgotten.swap(all.values);
  }
  if (has_block(storage)) return storage;
  if (!contents) return all.plain.get();
  TENON_ASSIGN_OR_RETURN(StorageOwner made, look(storage, *contents, use));
  std::lock_guard lock(all.mutex);
  if (!all.plain) all.plain = std::move(made);
  if (use != Use::read) forgotten.swap(all.values);
  return all.plain.get();
}

std::optional<Layout> layout_of(SharedStorage storage) {
  OpaqueValues* all = OpaqueAccess::of(storage)->opaque.load(std::memory_order_acquire);
  if (all == nullptr) return {};
  std::lock_guard lock(all->mutex);
  const OpaqueValue* value = find_true(OpaqueAccess::of(storage), *all, nullptr);
  return value != nullptr ? std::optional<Layout>(value->layout) : std::nullopt;
}

Result<StorageOwner> value_in(SharedStorage shared, const Layout& layout, uint64_t* converted) {
  Storage* storage = OpaqueAccess::of(shared);
  OpaqueValues& all = values_of(storage);
  {
    std::lock_guard lock(all.mutex);
    if (const OpaqueValue* value = find_true(storage, all, &layout)) return value->storage;
  }
  const uint64_t before = storage->version.load(std::memory_order_relaxed);
  TENON_ASSIGN_OR_RETURN(Storage * plain, shared.plain(Use::read));
  TENON_ASSIGN_OR_RETURN(StorageOwner value, make_value(storage->device, layout));
  TENON_RETURN_IF_ERROR(convert(value.get(), plain, layout, true));
  *converted += storage->bytes;
  std::lock_guard lock(all.mutex);
  if (!all.exposed && !storage->deleter) all.values.push_back({layout, value, before});
  return value;
}

Result<StorageOwner> make_value(DeviceState* device, const Layout& layout) {
  TENON_ASSIGN_OR_RETURN(const LayoutNeeds needs, needs_of(device, layout));
  TENON_ASSIGN_OR_RETURN(Storage * made, needs.image ? Storage::make_image(device, layout, needs.bytes)
                                                     : Storage::make(device, needs.bytes));
  return StorageOwner(made);
}

Storage* storage_of(DeviceState* device, uint64_t bytes, const Layout& layout, StorageOwner value) {
  auto all = std::make_unique<OpaqueValues>();
  all->values.push_back({layout, std::move(value), 0});
  return Storage::make_opaque(device, bytes, all.release());
}

Result<Storage*> expose(SharedStorage shared) {
  Storage* storage = OpaqueAccess::of(shared);
  if (!storage->device->layouts) return shared.plain(Use::write);
  OpaqueValues& all = values_of(storage);
  {
    std::lock_guard lock(all.mutex);
    all.exposed = true;
  }
  return shared.plain(Use::write);
}

Status settle_value(SharedStorage shared) {
  Storage* storage = OpaqueAccess::of(shared);
  OpaqueValues* all = storage->opaque.load(std::memory_order_acquire);
  if (all == nullptr || all->source || has_block(storage)) return settle(storage, false, false);
  StorageOwner contents;
  {
    std::lock_guard lock(all->mutex);
    contents = all->plain ? all->plain : all->values.front().storage;
  }
  return settle(contents.get(), false, false);
}

}  // namespace vm
}  // namespace tenon
