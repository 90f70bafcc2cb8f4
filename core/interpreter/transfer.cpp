#include "core/interpreter/transfer.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/interpreter/operands.h"
#include "core/interpreter/prepared.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/storage.h"
#include "core/vm/vm.h"
#include "primitives/dtype/convert.h"

namespace tenon {
namespace {

uint64_t byte_offset(const Tensor& tensor) {
  return static_cast<uint64_t>(dtype_bytes(tensor.dtype(), tensor.impl()->offset));
}

// Copies elements between two layouts of the same dims in host memory, the innermost axis in one loop.
void copy_strided(char* dst, const Dims& dst_strides, const char* src, const Dims& src_strides, const Dims& dims,
                  int64_t size) {
  if (dims.empty()) {
    std::memcpy(dst, src, static_cast<size_t>(size));
    return;
  }
  const int32_t inner = dims.rank() - 1;
  const int64_t count = dims[inner];
  const int64_t dst_step = dst_strides[inner] * size;
  const int64_t src_step = src_strides[inner] * size;
  Dims index = Dims::filled(inner, 0);
  while (true) {
    if (dst_step == size && src_step == size) {
      std::memcpy(dst, src, static_cast<size_t>(count * size));
    } else {
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(dst + i * dst_step, src + i * src_step, static_cast<size_t>(size));
      }
    }
    int32_t axis = inner - 1;
    for (; axis >= 0; --axis) {
      dst += dst_strides[axis] * size;
      src += src_strides[axis] * size;
      if (++index[axis] < dims[axis]) break;
      dst -= dst_strides[axis] * size * dims[axis];
      src -= src_strides[axis] * size * dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// Copies the span that `tensor` covers into a new storage on `target`.
Tensor transfer_span(const Tensor& tensor, DeviceState* target, uint64_t* bytes_moved) {
  const int64_t reach = span_elements(tensor);
  const Tensor flat = value_or_throw(make_tensor(target, tensor.dtype(), Dims{reach}));
  const auto bytes = static_cast<uint64_t>(flat.bytes());
  const vm::Operand dst{flat.impl()->storage, 0, true, true};
  const vm::Operand src{tensor.impl()->storage, byte_offset(tensor), false, false};
  throw_if_error(vm::copy(dst, src, bytes, {}));
  if (bytes_moved != nullptr) *bytes_moved += bytes;
  return make_view(flat, tensor.dtype(), tensor.dims(), tensor.strides(), 0);
}

// A view whose span has at least this many bytes, and more than twice as many as its elements, is gathered before it is
// copied.
constexpr int64_t kLargeSpan = 64 * 1024;

bool has_native_copy(const Tensor& tensor) {
  CastAttributes attributes{};
  attributes.dtype = tensor.dtype();
  const Tensor* inputs[] = {&tensor};
  Tensor made;
  OpCall call;
  call.op = &op_row(OpId::cast);
  call.inputs = inputs;
  call.attributes = &attributes;
  call.outputs = {&made, 1};
  return prepare(call, tensor.impl()->device, Reach::native_only).ok();
}

// `tensor`; or a row-major copy on its device, if most of its span belongs to other tensors and the device can make the
// copy.
Tensor without_gaps(const Tensor& tensor) {
  const int64_t span = dtype_bytes(tensor.dtype(), span_elements(tensor));
  if (span < kLargeSpan || span / 2 < tensor.bytes() || dtype_size(tensor.dtype()) == 0) return tensor;
  return has_native_copy(tensor) ? dense_on_device(tensor) : tensor;
}

char* host_address(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  return value_or_throw(impl.storage.plain(Use::write))->block.host + byte_offset(tensor);
}

}  // namespace

Tensor transfer(const Tensor& tensor, DeviceState* target, uint64_t* bytes_moved) {
  if (tensor.impl()->device == target) return tensor;
  if (tensor.elements() == 0) return value_or_throw(make_tensor(target, tensor.dtype(), tensor.dims()));
  return transfer_span(without_gaps(tensor), target, bytes_moved);
}

Tensor dense_copy(const Tensor& tensor) {
  DeviceState* host = value_or_throw(host_device_state());
  const Tensor here = transfer(tensor, host);
  if (here.contiguous() && here.impl()->storage != tensor.impl()->storage) return here;
  Tensor dense = value_or_throw(make_tensor(host, tensor.dtype(), tensor.dims()));
  if (dense.elements() == 0) return dense;
  throw_if_error(vm::settle(here.impl()->storage, false, false));
  throw_if_error(vm::settle(dense.impl()->storage, true, true));
  if (here.contiguous()) {
    std::memcpy(host_address(dense), host_address(here), static_cast<size_t>(dense.bytes()));
  } else {
    copy_strided(host_address(dense), dense.strides(), host_address(here), here.strides(), here.dims(),
                 dtype_size(here.dtype()));
  }
  return dense;
}

uint64_t store_into_view(const Tensor& view, const Tensor& source) {
  if (view.elements() == 0) return 0;
  const SharedStorage target = view.impl()->storage;
  DeviceState* host = source.impl()->device;
  uint64_t moved = 0;
  const Tensor staged = view.impl()->device == host ? view : Tensor();
  if (view.contiguous() && source.contiguous()) {
    const auto bytes = static_cast<uint64_t>(source.bytes());
    const vm::Operand dst{target, byte_offset(view), true, bytes == target.bytes()};
    throw_if_error(vm::copy(dst, {source.impl()->storage, byte_offset(source), false, false}, bytes, {}));
    moved = staged.defined() ? 0 : bytes;
  } else {
    const Tensor span = staged.defined() ? staged : transfer_span(view, host, &moved);
    throw_if_error(vm::settle(span.impl()->storage, true, false));
    throw_if_error(vm::settle(source.impl()->storage, false, false));
    copy_strided(host_address(span), span.strides(), host_address(source), source.strides(), view.dims(),
                 dtype_size(view.dtype()));
    if (!staged.defined()) {
      const auto bytes = static_cast<uint64_t>(dtype_bytes(view.dtype(), span_elements(view)));
      throw_if_error(
          vm::copy({target, byte_offset(view), true, false}, {span.impl()->storage, 0, false, false}, bytes, {}));
      moved += bytes;
    }
  }
  static constexpr std::string_view kName = "copy_from";
  target.note_write(kName);
  return moved;
}

}  // namespace tenon
