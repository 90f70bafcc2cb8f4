#include "core/tensor/dlpack.h"
#include "sdk/c/border.h"

using tenon::Code;
using tenon::Device;
using tenon::Dims;
using tenon::Error;
using tenon::Tensor;
namespace c = tenon::c;

namespace {

void check_bytes(size_t given, int64_t needed) {
  if (given == static_cast<size_t>(needed)) return;
  throw Error(Code::invalid_argument, fmt::format("The elements take {} bytes, but `bytes` is {}.", needed, given));
}

}  // namespace

extern "C" {

tenon_status tenon_tensor_empty(tenon_dtype dtype, int32_t rank, const int64_t* dims, const char* device,
                                tenon_tensor** out, tenon_error** error) {
  return c::guarded("tenon_tensor_empty", error, [&] {
    c::needed(out, "out");
    *out = c::handle_of(Tensor::empty(c::dims_of(rank, dims), c::dtype_of(dtype), c::device_of(device)));
  });
}

tenon_status tenon_tensor_copy(const void* data, size_t bytes, tenon_dtype dtype, int32_t rank, const int64_t* dims,
                               const char* device, tenon_tensor** out, tenon_error** error) {
  return c::guarded("tenon_tensor_copy", error, [&] {
    c::needed(out, "out");
    Tensor tensor = Tensor::empty(c::dims_of(rank, dims), c::dtype_of(dtype), c::device_of(device));
    check_bytes(bytes, tensor.bytes());
    if (bytes > 0) tensor.copy_from(c::needed(data, "data"));
    *out = c::handle_of(tensor);
  });
}

tenon_status tenon_tensor_borrow(void* data, tenon_dtype dtype, int32_t rank, const int64_t* dims,
                                 const int64_t* strides, void (*deleter)(void* context), void* context,
                                 tenon_tensor** out, tenon_error** error) {
  return c::guarded("tenon_tensor_borrow", error, [&] {
    c::needed(out, "out");
    std::function<void()> end = [] {};
    if (deleter != nullptr) end = [deleter, context] { deleter(context); };
    const Dims steps = strides == nullptr ? Dims() : c::dims_of(rank, strides, "strides");
    *out = c::handle_of(Tensor::borrow(data, c::dims_of(rank, dims), steps, c::dtype_of(dtype), std::move(end)));
  });
}

tenon_tensor* tenon_tensor_share(const tenon_tensor* tensor) {
  if (tensor != nullptr) c::impl_of(tensor)->count.fetch_add(1, std::memory_order_relaxed);
  return const_cast<tenon_tensor*>(tensor);
}

void tenon_tensor_free(tenon_tensor* tensor) {
  if (tensor != nullptr) Tensor{c::impl_of(tensor)};
}

tenon_status tenon_tensor_describe(const tenon_tensor* tensor, tenon_tensor_info* info, tenon_error** error) {
  return c::guarded("tenon_tensor_describe", error, [&] {
    const Tensor one = c::tensor_of(tensor);
    tenon_tensor_info known{};
    known.dtype = static_cast<tenon_dtype>(one.dtype());
    known.rank = one.rank();
    std::copy(one.dims().begin(), one.dims().end(), known.dims);
    std::copy(one.strides().begin(), one.strides().end(), known.strides);
    known.elements = one.elements();
    known.bytes = one.bytes();
    known.device = one.device().spelling().c_str();
    c::write_info(info, known);
  });
}

tenon_status tenon_tensor_read(const tenon_tensor* tensor, void* data, size_t bytes, tenon_error** error) {
  return c::guarded("tenon_tensor_read", error, [&] {
    const Tensor one = c::tensor_of(tensor);
    check_bytes(bytes, one.bytes());
    if (bytes == 0) return one.wait();
    one.copy_to_host(c::needed(data, "data"));
  });
}

tenon_status tenon_tensor_write(const tenon_tensor* tensor, const void* data, size_t bytes, tenon_error** error) {
  return c::guarded("tenon_tensor_write", error, [&] {
    Tensor one = c::tensor_of(tensor);
    check_bytes(bytes, one.bytes());
    if (bytes > 0) one.copy_from(c::needed(data, "data"));
  });
}

tenon_status tenon_tensor_data(const tenon_tensor* tensor, void** out, tenon_error** error) {
  return c::guarded("tenon_tensor_data", error, [&] {
    c::needed(out, "out");
    *out = c::tensor_of(tensor).data();
  });
}

tenon_status tenon_tensor_wait(const tenon_tensor* tensor, tenon_error** error) {
  return c::guarded("tenon_tensor_wait", error, [&] { c::tensor_of(tensor).wait(); });
}

tenon_status tenon_tensor_to_device(const tenon_tensor* tensor, const char* device, tenon_tensor** out,
                                    tenon_error** error) {
  return c::guarded("tenon_tensor_to_device", error, [&] {
    c::needed(out, "out");
    *out = c::handle_of(c::tensor_of(tensor).to(c::device_of(device)));
  });
}

tenon_status tenon_tensor_to_dtype(const tenon_tensor* tensor, tenon_dtype dtype, tenon_tensor** out,
                                   tenon_error** error) {
  return c::guarded("tenon_tensor_to_dtype", error, [&] {
    c::needed(out, "out");
    *out = c::handle_of(c::tensor_of(tensor).to(c::dtype_of(dtype)));
  });
}

tenon_status tenon_tensor_to_dlpack(const tenon_tensor* tensor, DLManagedTensor** out, tenon_error** error) {
  return c::guarded("tenon_tensor_to_dlpack", error, [&] {
    c::needed(out, "out");
    *out = tenon::to_dlpack(c::tensor_of(tensor));
  });
}

tenon_status tenon_tensor_from_dlpack(DLManagedTensor* managed, tenon_tensor** out, tenon_error** error) {
  return c::guarded("tenon_tensor_from_dlpack", error, [&] {
    c::needed(out, "out");
    *out = c::handle_of(tenon::from_dlpack(managed));
  });
}

}  // extern "C"
