#include "core/tensor/nested_list.h"

#include <algorithm>

#include "core/tensor/tensor.h"
#include "primitives/dtype/convert.h"
#include "primitives/text/format.h"

namespace tenon {

Dims NestedList::dims() const {
  Dims found;
  for (const NestedList* level = this; level->is_list_; level = &level->list_[0]) {
    found.push_back(static_cast<int64_t>(level->list_.size()));
    if (level->list_.empty()) break;
  }
  return found;
}

std::vector<Scalar> NestedList::numbers() const {
  if (!is_list_) return {number_};
  std::vector<Scalar> found;
  for (const NestedList& each : list_) {
    if (each.is_list_ != list_[0].is_list_ || !(each.dims() == list_[0].dims())) {
      throw Error(
          Code::invalid_argument,
          fmt::format("Tensor::from: a list of shape {} is next to one of shape {}; they must have the same shape.",
                      each.dims(), list_[0].dims()));
    }
    const std::vector<Scalar> inner = each.numbers();
    found.insert(found.end(), inner.begin(), inner.end());
  }
  return found;
}

namespace {

DType dtype_of_all(const std::vector<Scalar>& numbers) {
  DType found = numbers.empty() ? DType::f32 : DType::boolean;
  for (const Scalar& number : numbers) {
    if (number.dtype() == DType::f64) return DType::f32;
    if (number.dtype() != DType::boolean) found = DType::i64;
  }
  return found;
}

uint64_t bits_of(const Scalar& number, DType dtype) {
  if (is_floating(dtype)) {
    if (number.dtype() == DType::f64) return encode_float(dtype, static_cast<long double>(number.to_double()));
    return encode_float(dtype, static_cast<long double>(number.to_int()));
  }
  if (dtype == DType::boolean) return number.to<bool>() ? 1 : 0;
  return static_cast<uint64_t>(number.to_int());
}

}  // namespace

Tensor Tensor::from(const NestedList& list, DType dtype, Device device) {
  const std::vector<Scalar> numbers = list.numbers();
  const DType chosen = dtype == DType::none ? dtype_of_all(numbers) : dtype;
  const auto size = static_cast<size_t>(dtype_size(chosen));
  if (size == 0) {
    throw Error(
        Code::invalid_argument,
        fmt::format(
            "Tensor::from: elements of {} do not fill whole bytes; make the tensor in another dtype and cast it.",
            dtype_name(chosen)));
  }
  std::vector<uint8_t> bytes(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint64_t bits = bits_of(numbers[i], chosen);
    for (size_t k = 0; k < size; ++k) bytes[i * size + k] = static_cast<uint8_t>(bits >> (8 * k));
  }
  return copy_from_host(bytes.data(), list.dims(), chosen, device);
}

}  // namespace tenon
