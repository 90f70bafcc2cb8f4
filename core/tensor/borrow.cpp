// Tensors of the host device over memory that the application owns.
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon {

int64_t bytes_reached(std::string_view caller, const Dims& dims, const Dims& strides, DType dtype, int64_t elements) {
  if (strides.rank() != dims.rank()) {
    throw Error(Subject{caller}, Code::invalid_argument,
                fmt::format("strides {} and dims {} have different ranks.", strides, dims));
  }
  const int64_t size = std::max<int64_t>(1, dtype_size(dtype));
  int64_t reach = elements == 0 ? 0 : 1;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    int64_t step = 0, bytes = 0;
    const int64_t further = elements == 0 ? 0 : dims[axis] - 1;
    if (strides[axis] < 0) {
      throw Error(Subject{caller}, Code::invalid_argument,
                  fmt::format("strides {} of dims {} cannot be used: {} is negative.", strides, dims, strides[axis]));
    }
    if (__builtin_mul_overflow(strides[axis], further, &step) || __builtin_add_overflow(reach, step, &reach) ||
        __builtin_mul_overflow(reach, size, &bytes)) {
      throw Error(Subject{caller}, Code::invalid_argument,
                  fmt::format("strides {} of dims {} and dtype {} reach further than 2^63 - 1 bytes.", strides, dims,
                              dtype_name(dtype)));
    }
  }
  if (dtype_size(dtype) == 0 && !is_contiguous(dims, strides)) {
    throw Error(Subject{caller}, Code::invalid_argument,
                fmt::format("strides {} of dims {} are not row-major, but packed {} must be row-major.", strides, dims,
                            dtype_name(dtype)));
  }
  return dtype_bytes(dtype, reach);
}

void free_imported(DeviceState* device, ep_memory* memory) {
  if (!process::ended()) return device->ops.memory_free(device->handle, memory);
  static std::mutex mutex;
  static auto* left = new std::vector<ep_memory*>;
  std::lock_guard lock(mutex);
  left->push_back(memory);
}

Result<Storage*> borrow_host_memory(DeviceState* host, void* data, uint64_t bytes, std::function<void()> deleter) {
  if (host->ops.memory_import_host == nullptr) {
    return Status(Code::unsupported,
                  fmt::format("The device {} cannot use memory it did not allocate.", host->opened->spelling));
  }
  memory::Block block;
  block.size = bytes;
  block.host = static_cast<char*>(data);
  if (bytes > 0) {
    ep_error* error = nullptr;
    const ep_status code = host->ops.memory_import_host(host->handle, data, bytes, &block.memory, &error);
    TENON_RETURN_IF_ERROR(
        loader::take_error(code, error, fmt::format("borrowing host memory on {}", host->opened->spelling)));
  }
  host->borrowed.fetch_add(1, std::memory_order_relaxed);
  auto release = [host, memory = block.memory, user = std::move(deleter)] {
    free_imported(host, memory);
    host->borrowed.fetch_sub(1, std::memory_order_relaxed);
    if (user) user();
  };
  return Storage::borrow(host, block, bytes, std::move(release));
}

Tensor borrow_memory(std::string_view caller, void* data, const Dims& dims, const Dims& strides, DType dtype,
                     std::function<void()> deleter) {
  const int64_t elements = value_or_throw(checked_elements(dims, dtype));
  const Dims actual = strides.empty() ? contiguous_strides(dims) : strides;
  const int64_t bytes = bytes_reached(caller, dims, actual, dtype, elements);
  if (data == nullptr && bytes != 0) {
    throw Error(Subject{caller}, Code::invalid_argument,
                fmt::format("no data for {} bytes, shape {}, strides {}.", bytes, dims, actual));
  }
  const auto size = static_cast<uintptr_t>(std::max<int64_t>(1, dtype_size(dtype)));
  if (const uintptr_t past = reinterpret_cast<uintptr_t>(data) % size; past != 0) {
    throw Error(Subject{caller}, Code::unsupported,
                fmt::format("the data begins {} bytes past a multiple of {}, which an element of {} needs.", past, size,
                            dtype_name(dtype)));
  }
  DeviceState* host = value_or_throw(host_device_state());
  Storage* storage = value_or_throw(borrow_host_memory(host, data, static_cast<uint64_t>(bytes), std::move(deleter)));
  TensorImpl* impl = make_impl(host, dtype, dims, elements);
  impl->strides = actual;
  impl->contiguous = is_contiguous(dims, actual);
  impl->storage = storage;
  return Tensor(impl);
}

Tensor Tensor::borrow(void* data, const Dims& dims, const Dims& strides, DType dtype, std::function<void()> deleter) {
  return borrow_memory("Tensor::borrow", data, dims, strides, dtype, std::move(deleter));
}

}  // namespace tenon
