#include "core/ops/known_sizes.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "core/tensor/device.h"

namespace tenon {

void KnownSizes::read_elements(TensorImpl&) {
  for (SymDim& element : elements) element = bound(element, "the elements of a tensor of sizes");
}

SymDims KnownSizes::sizes(const TensorImpl& tensor) const {
  SymDims dims;
  for (const int64_t dim : tensor.dims) dims.push_back(dim);
  return dims;
}

void set_known_sizes(const Tensor& tensor, std::vector<SymDim> elements) {
  delete tensor.impl()->stand_in;
  tensor.impl()->stand_in = new KnownSizes(std::move(elements));
}

namespace sized {

Tensor ints(std::span<const SymDim> elements, const Dims& dims) {
  std::vector<int64_t> hints;
  for (const SymDim element : elements) hints.push_back(hint_of(element));
  const Tensor tensor = Tensor::from<int64_t>(hints, dims, Device::host());
  const bool open = std::any_of(elements.begin(), elements.end(), [](SymDim element) { return !element.is_number(); });
  if (open) set_known_sizes(tensor, {elements.begin(), elements.end()});
  return tensor;
}

std::vector<SymDim> elements(const Tensor& tensor) {
  if (const KnownSizes* known = known_sizes(tensor)) return known->elements;
  std::vector<SymDim> result;
  for (const int64_t number : cast(tensor.to(Device::host()), DType::i64).to_host<int64_t>()) {
    result.push_back(SymDim::saturated(number));
  }
  return result;
}

}  // namespace sized
}  // namespace tenon
