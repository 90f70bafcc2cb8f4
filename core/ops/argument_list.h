// ArgumentList: the arguments of a dynamic call bound to the parameters of one signature, which accepts them all.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/device/export.h"
#include "core/ops/call.h"
#include "core/tensor/int_list.h"

namespace tenon {

class TENON_API ArgumentList {
 public:
  // One pointer per parameter, null where the caller omitted it. `one`: receives a result that is a single tensor;
  // null: the result becomes a list of one.
  explicit ArgumentList(std::span<const Value* const> values, std::optional<Tensor>* one = nullptr)
      : values_(values), one_(one) {}

  // `result` in the form that Signature::invoke returns: a list of one; an empty list if `one` has received it.
  [[gnu::always_inline]] TensorList one(Tensor result) const {
    if (one_ == nullptr) return list_of(std::move(result));
    one_->emplace(std::move(result));
    return {};
  }

  bool given(size_t i) const { return values_[i] != nullptr; }
  bool none(size_t i) const { return values_[i]->kind() == kAcceptsNone; }
  const Tensor& tensor(size_t i) const { return *values_[i]->tensor(); }
  Tensor& mutable_tensor(size_t i) const { return *values_[i]->tensor(); }
  // Argument i as a tensor. A number becomes a tensor of rank 0. Its dtype is chosen so that an op on it and argument
  // `like` has the same result type as an op on the number itself.
  Tensor tensor_or_number(size_t i, size_t like) const;
  // Like tensor_or_number, but a number becomes an f64 tensor on the host, so that no digit is lost.
  Tensor tensor_or_double(size_t i) const;
  const TensorList& tensors(size_t i) const;
  Scalar scalar(size_t i) const;
  int64_t integer(size_t i) const { return *values_[i]->get<int64_t>(); }
  double number(size_t i) const { return scalar(i).to_double(); }
  bool boolean(size_t i) const { return *values_[i]->get<bool>(); }
  IntList ints(size_t i) const;
  DType dtype(size_t i) const { return *values_[i]->get<DType>(); }
  Device device(size_t i) const { return *values_[i]->get<Device>(); }
  Generator* generator(size_t i) const { return *values_[i]->get<Generator*>(); }
  std::string_view text(size_t i) const { return *values_[i]->get<std::string>(); }

 private:
  static TensorList list_of(Tensor result);

  std::span<const Value* const> values_;
  std::optional<Tensor>* one_;
};

}  // namespace tenon
