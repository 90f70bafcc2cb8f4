#include "core/tensor/unread.h"

#include <string>
#include <utility>

#include "core/device/device_state.h"
#include "core/tensor/factory.h"
#include "core/vm/unread.h"

namespace tenon {
namespace {

Tensor read_now(const Dims& dims, DType dtype, Device device, const std::function<Status(void* out)>& read) {
  Tensor tensor = Tensor::empty(dims, dtype, device);
  if (tensor.elements() == 0) return tensor;
  if (void* direct = tensor.data()) {
    throw_if_error(read(direct));
    return tensor;
  }
  std::string staging(static_cast<size_t>(tensor.bytes()), '\0');
  throw_if_error(read(staging.data()));
  tensor.copy_from(staging.data());
  return tensor;
}

}  // namespace

Tensor unread_tensor(const Dims& dims, DType dtype, Device device, std::function<Status(void* out)> read) {
  DeviceState* state = device.state();
  const int64_t elements = value_or_throw(checked_elements(dims, dtype));
  if (elements == 0 || !vm::may_be_unread(state)) return read_now(dims, dtype, device, read);
  TensorImpl* impl = make_impl(state, dtype, dims, elements);
  impl->storage = vm::unread_storage(state, static_cast<uint64_t>(dtype_bytes(dtype, elements)), std::move(read));
  return Tensor(impl);
}

bool is_unread(const Tensor& tensor) {
  const SharedStorage storage = tensor.impl()->storage;
  return storage != nullptr && vm::is_unread(storage);
}

}  // namespace tenon
