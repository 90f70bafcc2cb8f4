#include "core/global/lists.h"

#include "core/ops/ops.h"

namespace tenon::global {

Tensor where(const Tensor& data, Device device) { return data.device() == device ? data : data.to(device); }

Tensor dense_on(const Tensor& tensor, Device device) { return where(tenon::contiguous(tensor), device); }

Tensor flat(const Tensor& tensor) { return tenon::reshape(tensor, {tensor.elements()}); }

Tensor part_along(const Tensor& tensor, int64_t axis, Range range) {
  return tenon::slice(tensor, axis, range.begin, range.end());
}

Tensor packed(const TensorList& parts, Device device) {
  if (parts.size() == 1) return flat(dense_on(parts[0], device));
  TensorList lists;
  for (const Tensor& part : parts) lists.push_back(flat(dense_on(part, device)));
  return tenon::concat(lists, 0);
}

Tensor nothing(const Dims& dims, DType dtype, Device device) {
  return is_floating(dtype) ? tenon::full(dims, -0.0, dtype, device) : tenon::zeros(dims, dtype, device);
}

}  // namespace tenon::global
