#include "core/interpreter/constant.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/interpreter/operands.h"
#include "core/tensor/factory.h"
#include "core/vm/unread.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// The constants that have their original, by storage. An entry is identified by its address: locking the object here
// could make this thread its last owner.
struct Registry {
  struct Entry {
    const Constant* id;
    std::weak_ptr<Constant> constant;
  };
  std::mutex mutex;
  std::unordered_map<const Storage*, std::vector<Entry>> entries;

  void forget(SharedStorage storage, const Constant* id) {
    const std::lock_guard lock(mutex);
    const auto found = entries.find(storage.at_hand());
    if (found == entries.end()) return;
    std::erase_if(found->second, [&](const Entry& entry) { return entry.id == id; });
    if (found->second.empty()) entries.erase(found);
  }
};

Registry& registry() {
  static auto* all = new Registry;  // never destroyed: constants in statics may end later
  return *all;
}

uint64_t version_of(SharedStorage storage) { return storage.version(); }

// Memory for packed bytes, aligned for any operand.
Tensor room_for(DeviceState* device, uint64_t bytes) {
  const Dims dims{static_cast<int64_t>(bytes)};
  const auto alignment = static_cast<int32_t>(device->opened->info.pools[0].minimum_alignment);
  return aligned_tensor(device, {DType::u8, dims, contiguous_strides(dims)}, alignment);
}

vm::Operand operand_of(const Tensor& tensor, bool write) {
  const TensorImpl& impl = *tensor.impl();
  return {impl.storage, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)), write,
          write && fills_storage(impl)};
}

// `tensor`; if it is unread, its elements in temporary memory that ends with the result.
Tensor to_pack(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  StorageOwner apart = value_or_throw(vm::read_apart(impl.storage));
  if (!apart) return tensor;
  TensorImpl* made = make_impl(impl.device, impl.dtype, impl.dims, impl.elements);
  made->strides = impl.strides;
  made->contiguous = impl.contiguous;
  made->offset = impl.offset;
  made->storage = apart.release();
  return Tensor(made);
}

}  // namespace

Constant::Constant(const Tensor& tensor)
    : device_(tensor.impl()->device),
      meta_{tensor.dtype(), tensor.dims(), tensor.strides()},
      offset_(tensor.impl()->offset),
      storage_(tensor.impl()->storage),
      version_(version_of(storage_)),
      original_(tensor) {}

Constant::~Constant() {
  give_back();
  for (Packed& one : packed_) {
    device_->packed.fetch_sub(static_cast<uint64_t>(one.bytes.bytes()), std::memory_order_relaxed);
    if (one.primitive != nullptr) one.primitive->release();
  }
}

std::shared_ptr<Constant> Constant::of(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Registry::Entry>& entries = all.entries[impl.storage.at_hand()];
  for (const Registry::Entry& entry : entries) {
    const Constant& known = *entry.id;
    if (known.offset_ != impl.offset || known.meta_.dtype != impl.dtype || !(known.meta_.dims == impl.dims)) continue;
    if (!(known.meta_.strides == impl.strides) || known.version_ != version_of(impl.storage)) continue;
    if (std::shared_ptr<Constant> constant = entry.constant.lock()) return constant;
  }
  std::shared_ptr<Constant> made(new Constant(tensor));
  entries.push_back({made.get(), made});
  return made;
}

void Constant::give_back() {
  registry().forget(storage_, this);
  Tensor dropped;
  const std::lock_guard lock(mutex_);
  std::swap(dropped, original_);
}

Tensor Constant::original() const {
  const std::lock_guard lock(mutex_);
  return original_;
}

uint64_t Constant::packed_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const Packed& one : packed_) bytes += static_cast<uint64_t>(one.bytes.bytes());
  return bytes;
}

const Constant::Packed* Constant::find(const Primitive& primitive, const Dims& dims) const {
  for (const Packed& one : packed_) {
    if (one.layout != primitive.pack_layout || !(one.dims == dims)) continue;
    if (primitive.pack_layout != 0 || one.primitive == &primitive) return &one;
  }
  return nullptr;
}

// Waits, so that a failure is known before a launch reads the bytes. The caller holds the mutex.
void Constant::pack(const Prepared& prepared, const PreparedOperand& operand) {
  Primitive& primitive = *prepared.primitive;
  const bool dense = (prepared.dense_inputs >> operand.input & 1) != 0;
  const Tensor original = to_pack(original_);
  const Tensor source = dense ? dense_on_device(original) : original;
  Packed made{primitive.pack_layout, nullptr, operand.dims, room_for(device_, primitive.pack_bytes)};
  throw_if_error(vm::pack(&primitive, operand_of(made.bytes, true), operand_of(source, false)));
  throw_if_error(vm::settle(made.bytes.impl()->storage, false, false));
  if (primitive.pack_layout == 0) {
    primitive.retain();
    made.primitive = &primitive;
  }
  device_->packed.fetch_add(primitive.pack_bytes, std::memory_order_relaxed);
  packed_.push_back(std::move(made));
}

Tensor Constant::input_of(const Prepared& prepared, size_t index) {
  const std::lock_guard lock(mutex_);
  const bool takes_packed = prepared.packed_input == static_cast<int>(index);
  const PreparedOperand* operand =
      takes_packed ? &prepared.operands[static_cast<size_t>(prepared.primitive->pack_operand)] : nullptr;
  const Packed* found = takes_packed ? find(*prepared.primitive, operand->dims) : nullptr;
  if (found == nullptr && !original_.defined()) {
    throw Error(Subject{prepared.op->name}, Code::invalid_argument,
                fmt::format("a constant of shape {} was dropped, but a primitive needs it {}.", meta_.dims,
                            takes_packed ? "in a layout in which it was not packed" : "as it was"));
  }
  if (!takes_packed) return original_;
  if (found == nullptr) {
    pack(prepared, *operand);
    found = &packed_.back();
  }
  const int64_t bits = dtype_info(meta_.dtype).bits;
  return make_view(found->bytes, meta_.dtype, meta_.dims, meta_.strides, found->bytes.impl()->offset * 8 / bits);
}

}  // namespace tenon
