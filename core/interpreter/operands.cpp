#include "core/interpreter/operands.h"

#include <vector>

#include "core/device/process.h"
#include "core/interpreter/eager.h"
#include "core/interpreter/execution_report.h"
#include "core/tensor/factory.h"
#include "core/vm/vm.h"
#include "primitives/simplify/simplify.h"

namespace tenon {
namespace {

// The bytes [first, last) of its storage that a tensor can touch.
struct ByteRange {
  int64_t first, last;
  explicit ByteRange(const Tensor& tensor) {
    const TensorImpl& impl = *tensor.impl();
    first = dtype_bytes(impl.dtype, impl.offset);
    last = first + (impl.elements == 0 ? 0 : dtype_bytes(impl.dtype, span_elements(tensor)));
  }
};

// Copies `count` elements. Both `src` and `dst` begin `at` elements after their first element.
void copy_run(const Tensor& dst, const Tensor& src, int64_t at, int64_t count) {
  const auto operand = [at](const Tensor& tensor, bool write) {
    const TensorImpl& impl = *tensor.impl();
    return vm::Operand{impl.storage, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset + at)), write, false};
  };
  const auto bytes = static_cast<uint64_t>(dtype_bytes(src.dtype(), count));
  throw_if_error(vm::copy(operand(dst, true), operand(src, false), bytes, {}));
}

}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.impl()->storage != b.impl()->storage) return false;
  if (a.impl()->device->exclusive) return true;
  const ByteRange ra(a);
  const ByteRange rb(b);
  return ra.first < rb.last && rb.first < ra.last;
}

// Blocks begin at the alignment of their device's memory. Borrowed memory may begin anywhere.
bool misaligned(const Tensor& tensor, int32_t alignment) {
  if (alignment <= 1) return false;
  const memory::Block& block = value_or_throw(tensor.impl()->storage.plain(Use::read))->block;
  const uint64_t begin = block.owner == nullptr ? reinterpret_cast<uintptr_t>(block.host) : 0;
  return (begin + address_of(*tensor.impl()).offset) % static_cast<uint64_t>(alignment) != 0;
}

Tensor aligned_tensor(DeviceState* device, const TensorMeta& meta, int32_t alignment) {
  Tensor tensor = value_or_throw(make_tensor(device, meta.dtype, meta.dims, meta.strides));
  if (!misaligned(tensor, alignment)) return tensor;
  const int64_t size = dtype_size(meta.dtype);
  const Tensor roomy =
      value_or_throw(make_tensor(device, meta.dtype, Dims{element_count(meta.dims) + alignment / size}));
  const auto past = static_cast<int64_t>(address_of(*roomy.impl()).offset % static_cast<uint64_t>(alignment));
  return make_view(roomy, meta.dtype, meta.dims, meta.strides, past == 0 ? 0 : (alignment - past) / size);
}

Tensor aligned_like(const Tensor& tensor, int32_t alignment) {
  const Dims reach{span_elements(tensor)};
  const Tensor block =
      aligned_tensor(tensor.impl()->device, {tensor.dtype(), reach, contiguous_strides(reach)}, alignment);
  return make_view(block, tensor.dtype(), tensor.dims(), tensor.strides(), block.impl()->offset);
}

Tensor realigned(const Tensor& tensor, int32_t alignment) {
  const Tensor copy = aligned_like(tensor, alignment);
  copy_run(copy, tensor, 0, span_elements(tensor));
  return copy;
}

void copy_back(const Tensor& dst, const Tensor& src) {
  Dims dims = dst.dims();
  Dims strides = dst.strides();
  int64_t* all[] = {strides.data()};
  const int32_t rank = simplify::fold_elementwise(dims.rank(), dims.data(), all, 1);
  const bool runs = strides[rank - 1] == 1;  // the innermost axis has unit stride
  const int64_t run = runs ? dims[rank - 1] : 1;
  const int32_t outer = runs ? rank - 1 : rank;
  Dims index = Dims::filled(outer, 0);
  for (int64_t at = 0;;) {
    copy_run(dst, src, at, run);
    int32_t axis = outer - 1;
    for (; axis >= 0; --axis) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

Tensor dense_on_device(const Tensor& tensor, const Dims& strides) {
  Tensor copy = value_or_throw(make_tensor(tensor.impl()->device, tensor.dtype(), tensor.dims(), strides));
  if ((process::attention.load(std::memory_order_relaxed) & process::kReport) == 0) {
    copy_elements(copy, tensor);
    return copy;
  }
  std::vector<ExecutionEntry> entries;
  {
    ExecutionScope scope;
    copy_elements(copy, tensor);
    entries = scope.take();
  }
  for (ExecutionEntry& entry : entries) {
    entry.op = kDenseCopy;
    note_execution(std::move(entry));
  }
  return copy;
}

Tensor dense_on_device(const Tensor& tensor) { return dense_on_device(tensor, contiguous_strides(tensor.dims())); }

}  // namespace tenon
