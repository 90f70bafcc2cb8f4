// Functions of Tensor that move elements between a device and host memory. They are in this room because strided
// elements need an op, which gathers or scatters them.
#include "core/device/device_state.h"
#include "core/interpreter/transfer.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/tensor/host_watch.h"
#include "core/tensor/recording.h"
#include "core/tensor/tensor.h"
#include "core/vm/vm.h"

namespace tenon {

void Tensor::copy_to_host(void* data) const {
  if (call_context.host_watch != nullptr) [[unlikely]] {
    const Tensor seen = call_context.host_watch->look("copy_to_host", *this);
    if (seen.impl() != impl_) return seen.copy_to_host(data);
  }
  if (at("copy_to_host").storage == nullptr) return with_elements("copy_to_host: the tensor", *this).copy_to_host(data);
  if (RecordedValue* value = recorded_value(*impl_)) [[unlikely]]
    value->read_elements(*impl_);
  if (elements() == 0) {
    throw_if_error(vm::settle(impl_->storage, false, false));
    return;
  }
  const Tensor dense = contiguous() ? *this : dense_copy(*this);
  const TensorImpl& impl = *dense.impl();
  const vm::Operand src{impl.storage, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)), false, false};
  throw_if_error(vm::download(data, src, static_cast<uint64_t>(dense.bytes())));
}

void Tensor::copy_from(const void* data) {
  (void)at("copy_from");
  if (&current_interpreter() != &eager_interpreter()) {  // it may keep its arguments
    tenon::copy_from(*this, copy_from_host(data, dims(), dtype(), Device::host()));
    return;
  }
  if (impl_->storage == nullptr) refuse_recorded("copy_from: the tensor", *this);
  if (elements() == 0) return;
  if (!contiguous()) {
    store_into_view(*this, copy_from_host(data, dims(), dtype(), Device::host()));
    return;
  }
  const bool whole = static_cast<uint64_t>(bytes()) == impl_->storage.bytes();
  const vm::Operand dst{impl_->storage, static_cast<uint64_t>(dtype_bytes(dtype(), impl_->offset)), true, whole};
  throw_if_error(vm::upload(dst, data, static_cast<uint64_t>(bytes()), {}));
  static constexpr std::string_view kName = "copy_from";
  impl_->storage.note_write(kName);
}

Tensor Tensor::to(Device device) const {
  (void)at("to");
  return tenon::to(*this, device);
}

}  // namespace tenon
