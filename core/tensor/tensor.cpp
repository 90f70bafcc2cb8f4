#include "core/tensor/tensor.h"

#include <cstring>

#include "core/device/device_state.h"
#include "core/device/free_list.h"
#include "core/tensor/factory.h"
#include "core/tensor/gradient_state.h"
#include "core/tensor/host_watch.h"
#include "core/tensor/recording.h"
#include "core/vm/opaque.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using Impls = memory::FreeList<TensorImpl>;

// The number of elements of `dims`, if every dim is at least 1, an element takes `size` whole bytes, and an int64 can
// hold the count; else 0.
inline int64_t plain_count(const Dims& dims, int64_t size) {
  int64_t count = 1, bytes = size;
  for (const int64_t dim : dims) {
    if (dim < 1 || __builtin_mul_overflow(bytes, dim, &bytes)) return 0;
    count *= dim;
  }
  return size == 0 ? 0 : count;
}

}  // namespace

Result<int64_t> checked_elements(const Dims& dims, DType dtype) {
  const int64_t size = dtype_size(dtype);
  if (const int64_t count = plain_count(dims, size); count != 0) [[likely]]
    return count;
  if (size == 0 && dtype_info(dtype).bits == 0) [[unlikely]] {
    return Status(Code::invalid_argument, fmt::format("A tensor of shape {} cannot be made: no dtype has number {}.",
                                                      dims, static_cast<int32_t>(dtype)));
  }
  for (int64_t dim : dims) {
    if (dim < 0) {
      return Status(Code::invalid_argument,
                    fmt::format("A tensor of shape {} cannot be made: its dim {} is negative.", dims, dim));
    }
  }
  const std::optional<int64_t> count = checked_count(dims, std::max<int64_t>(1, size));
  if (!count) {
    return Status(
        Code::invalid_argument,
        fmt::format("A tensor of shape {} and dtype {} cannot be made: its size in bytes is more than 2^63 - 1.", dims,
                    dtype_name(dtype)));
  }
  return *count;
}

TensorImpl* make_impl(DeviceState* device, DType dtype, const Dims& dims, int64_t elements) {
  TensorImpl* impl = Impls::make();
  impl->device = device;
  impl->dtype = dtype;
  impl->dims = dims;
  impl->strides = contiguous_strides(dims);
  impl->elements = elements;
  return impl;
}

std::string origin_of(const Tensor& tensor) {
  const StandIn* value = tensor.impl()->stand_in;
  if (value == nullptr) return "a value of the probe of a decomposition, which computes nothing";
  return value->origin();
}

std::string RecordedValue::origin() const {
  const bool finished = recording->finished.load(std::memory_order_relaxed);
  return fmt::format("a value of {}{}", recording->name,
                     finished ? ", which has finished" : ", which is being recorded");
}

Tensor with_elements(std::string_view what, const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.storage != nullptr) return tensor;
  const SpreadValue* value = spread_value(tensor);
  if (value == nullptr) refuse_recorded(what, tensor);
  return value->gathered(tensor);
}

uint64_t write_count(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.storage != nullptr) [[likely]]
    return impl.storage.version();
  return impl.stand_in == nullptr ? 0 : impl.stand_in->version();
}

std::string_view last_writer(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.storage != nullptr) return impl.storage.written_by();
  return impl.stand_in == nullptr ? std::string_view() : impl.stand_in->written_by();
}

void refuse_recorded(std::string_view what, const Tensor& tensor) {
  throw Error(Code::invalid_argument,
              fmt::format("{} of shape {} has no data: it is {}.", what, tensor.impl()->dims, origin_of(tensor)));
}

namespace {

[[gnu::always_inline]] inline TensorImpl* make_over(Storage* storage, DeviceState* device, DType dtype,
                                                    const Dims& dims, const Dims& strides, int64_t elements) {
  TensorImpl* impl = Impls::make();
  impl->device = device;
  impl->dtype = dtype;
  impl->elements = elements;
  impl->dims = dims;
  impl->strides = strides;
  impl->storage = storage;
  return impl;
}

// A tensor of `dims`, which are known to hold `elements` elements in `bytes` bytes.
[[gnu::always_inline]] inline Result<Tensor> make_checked(DeviceState* device, DType dtype, const Dims& dims,
                                                          const Dims& strides, int64_t elements, int64_t bytes) {
  Result<Storage*> storage = Storage::make(device, static_cast<uint64_t>(bytes));
  if (!storage.ok()) [[unlikely]]
    return storage.status();
  return Tensor(make_over(storage.value(), device, dtype, dims, strides, elements));
}

}  // namespace

Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims) {
  TENON_ASSIGN_OR_RETURN(const int64_t elements, checked_elements(dims, dtype));
  return make_checked(device, dtype, dims, contiguous_strides(dims), elements, dtype_bytes(dtype, elements));
}

Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims, const Dims& strides) {
  TENON_ASSIGN_OR_RETURN(const int64_t elements, checked_elements(dims, dtype));
  Result<Tensor> tensor = make_checked(device, dtype, dims, strides, elements, dtype_bytes(dtype, elements));
  if (tensor.ok()) settle_layout(tensor->impl());
  return tensor;
}

Tensor make_tensor_like(const TensorImpl& shaped, DType dtype) {
  Result<Storage*> storage = Storage::make(shaped.device, static_cast<uint64_t>(dtype_size(dtype) * shaped.elements));
  if (!storage.ok()) [[unlikely]]
    throw Error(storage.status());
  return Tensor(make_over(storage.value(), shaped.device, dtype, shaped.dims, shaped.strides, shaped.elements));
}

Tensor begin_view(const TensorImpl& base) {
  TensorImpl* impl = Impls::make();
  impl->device = base.device;
  impl->storage = base.storage;
  if (impl->storage != nullptr) impl->storage.retain_tensor();
  return Tensor(impl);
}

namespace {

[[gnu::always_inline]] inline void settle(TensorImpl* impl) {
  int64_t elements = 1;
  bool dense = true;
  for (int32_t axis = impl->dims.rank() - 1; axis >= 0; --axis) {
    const int64_t dim = impl->dims[axis];
    if (dim == 1) continue;
    dense = dense && impl->strides[axis] == elements;
    elements *= dim;
  }
  impl->elements = elements;
  impl->contiguous = dense || elements == 0;
}

}  // namespace

void settle_layout(TensorImpl* impl) { settle(impl); }

Tensor make_view(const Tensor& base, DType dtype, const Dims& dims, const Dims& strides, int64_t offset) {
  Tensor view = begin_view(*base.impl());
  TensorImpl* impl = view.impl();
  impl->dtype = dtype;
  impl->dims = dims;
  impl->strides = strides;
  impl->offset = offset;
  settle_layout(impl);
  return view;
}

int64_t span_elements(const Tensor& tensor) {
  int64_t reach = 1;
  for (int32_t axis = 0; axis < tensor.rank(); ++axis) reach += (tensor.dims()[axis] - 1) * tensor.strides()[axis];
  return reach;
}

namespace {

[[gnu::always_inline]] inline TensorImpl* impl_of(DeviceState* device, const TensorMeta& meta) {
  TensorImpl* impl = Impls::make();
  impl->device = device;
  impl->dtype = meta.dtype;
  impl->dims = meta.dims;
  impl->strides = meta.strides;
  settle(impl);
  return impl;
}

}  // namespace

Tensor make_meta(DeviceState* device, const TensorMeta& meta) { return Tensor(impl_of(device, meta)); }

Tensor make_tensor_of(DeviceState* device, const TensorMeta& meta) {
  Tensor tensor(impl_of(device, meta));
  const int64_t bytes = dtype_bytes(meta.dtype, tensor.impl()->elements);
  const Result<Storage*> storage = Storage::make(device, static_cast<uint64_t>(bytes));
  if (!storage.ok()) [[unlikely]]
    throw Error(storage.status());
  tensor.impl()->storage = storage.value();
  return tensor;
}

void Tensor::refuse_undefined(const char* function) {
  throw Error(Subject{function}, Code::invalid_argument,
              "the tensor is undefined: it was made without a value, or moved from.");
}

void Tensor::read_open(TensorImpl& impl, SizeRead what, int64_t axis) {
  recorded_value(impl)->read_sizes(impl, what, axis);
}

void Tensor::destroy(TensorImpl* impl) {
  if (impl->gradient != nullptr) [[unlikely]]
    delete impl->gradient;
  if (impl->stand_in != nullptr) [[unlikely]]
    delete impl->stand_in;
  if (impl->storage != nullptr) [[likely]]
    impl->storage.release_tensor();
  Impls::destroy(impl);
}

Tensor Tensor::empty(const Dims& dims, DType dtype, Device device) {
  if (!device) device = Device::current();
  const Tensor tensor = value_or_throw(make_tensor(device.state(), dtype, dims));
  if (call_context.host_watch != nullptr) [[unlikely]]
    call_context.host_watch->made(tensor, false);
  return tensor;
}

Tensor Tensor::copy_from_host(const void* data, const Dims& dims, DType dtype, Device device) {
  if (!device) device = Device::current();
  Tensor tensor = value_or_throw(make_tensor(device.state(), dtype, dims));
  if (call_context.host_watch != nullptr) [[unlikely]]
    call_context.host_watch->made(tensor, true);
  if (tensor.bytes() == 0) return tensor;
  const vm::Operand dst{tensor.impl()->storage, 0, true, true};
  throw_if_error(vm::upload(dst, data, static_cast<uint64_t>(tensor.bytes()), {}));
  return tensor;
}

int64_t Tensor::dim(int64_t axis) const {
  const Dims& dims = at("dim").dims;
  const int64_t number = axis < 0 ? axis + dims.rank() : axis;
  if (number < 0 || number >= dims.rank()) {
    throw Error(
        Subject{"dim"}, Code::invalid_argument,
        fmt::format("axis {} is outside [{}, {}) of a tensor of shape {}.", axis, -dims.rank(), dims.rank(), dims));
  }
  if (impl_->open) [[unlikely]]
    read_open(*impl_, SizeRead::dim, number);
  return dims[number];
}

int64_t Tensor::bytes() const {
  const TensorImpl& impl = read("bytes", SizeRead::elements);
  return dtype_bytes(impl.dtype, impl.elements);
}

void Tensor::wait() const {
  if (at("wait").storage != nullptr) throw_if_error(vm::settle_value(impl_->storage));
}

void Tensor::access(Access mode, std::function<void(void* data)> function) const {
  if (call_context.host_watch != nullptr) [[unlikely]] {
    const Tensor seen = call_context.host_watch->look("access", *this);
    if (seen.impl() != impl_) return seen.access(mode, std::move(function));
  }
  if (impl_->storage == nullptr) refuse_recorded("access: the tensor", *this);
  if (RecordedValue* value = recorded_value(*impl_)) value->read_elements(*impl_);
  const bool reads = (static_cast<uint8_t>(mode) & static_cast<uint8_t>(Access::read)) != 0;
  const bool writes = (static_cast<uint8_t>(mode) & static_cast<uint8_t>(Access::write)) != 0;
  int64_t span = elements() == 0 ? 0 : 1;  // storage elements from the first to the last
  for (int32_t axis = 0; axis < rank() && span != 0; ++axis) {
    if (writes && strides()[axis] == 0 && dims()[axis] > 1) {
      throw Error(Subject{"access"}, Code::invalid_argument,
                  fmt::format("axis {} of a tensor of shape {} is expanded: its {} elements share one "
                              "location, and cannot be written.",
                              axis, dims(), dims()[axis]),
                  "Write to a contiguous tensor.");
    }
    span += (dims()[axis] - 1) * strides()[axis];
  }
  if (span == 0) return;
  const auto bytes = static_cast<uint64_t>(dtype_bytes(dtype(), span));
  const bool covers = contiguous() && bytes == impl_->storage.bytes();
  const vm::Operand operand{impl_->storage, static_cast<uint64_t>(dtype_bytes(dtype(), impl_->offset)), writes,
                            writes && !reads && covers};
  throw_if_error(vm::access(operand, bytes, reads || !contiguous(), std::move(function)));
  static constexpr std::string_view kName = "access";
  if (writes) impl_->storage.note_write(kName);
}

namespace {

void* element_at(const TensorImpl& impl, const Storage& storage) {
  return storage.block.host == nullptr ? nullptr : storage.block.host + dtype_bytes(impl.dtype, impl.offset);
}

// True if the elements are in host memory, no pending write changes them, and no watch observes reads.
bool is_at_hand(const TensorImpl& impl) {
  return call_context.host_watch == nullptr && impl.storage != nullptr && impl.stand_in == nullptr &&
         impl.device->mapped && !impl.device->layouts && !impl.storage.busy_for_read();
}

// Tensor::data for elements that are not at hand.
[[gnu::noinline]] void* awaited_data(const Tensor& tensor) {
  if (call_context.host_watch != nullptr) {
    const Tensor seen = call_context.host_watch->look("data", tensor);
    if (seen.impl() != tensor.impl()) return seen.data();
  }
  TensorImpl& impl = *tensor.impl();
  if (impl.storage == nullptr || !impl.device->mapped) return nullptr;
  if (RecordedValue* value = recorded_value(impl)) value->read_elements(impl);
  Storage* plain = value_or_throw(vm::expose(impl.storage));
  throw_if_error(vm::settle(plain, true, false));
  return element_at(impl, *plain);
}

}  // namespace

Scalar Tensor::item() const {
  if (read("item", SizeRead::elements).elements != 1) {
    throw Error(Subject{"item"}, Code::invalid_argument,
                fmt::format("a tensor of shape {} has {} elements, not one.", dims(), elements()));
  }
  if (impl_->device->synchronous && is_at_hand(*impl_) && dtype_size(impl_->dtype) != 0) {
    return element_as_scalar(element_at(*impl_, *impl_->storage.at_hand()), impl_->dtype);
  }
  unsigned char bytes[16] = {};
  copy_to_host(bytes);
  return element_as_scalar(bytes, dtype());
}

void* Tensor::data() const {
  const TensorImpl& impl = at("data");
  return is_at_hand(impl) ? element_at(impl, *impl.storage.at_hand()) : awaited_data(*this);
}

}  // namespace tenon
