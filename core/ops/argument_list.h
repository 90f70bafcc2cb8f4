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
  // One pointer per parameter, null where the caller left it out. `one`: where a result that is no list goes; null: it
  // becomes a list of one.
  explicit ArgumentList(std::span<const Value* const> values, std::optional<Tensor>* one = nullptr)
      : values_(values), one_(one) {}

  // `result` as Signature::invoke returns it: a list of one, or none once the caller's place has it.
  [[gnu::always_inline]] TensorList one(Tensor result) const {
    if (one_ == nullptr) return {std::move(result)};
    one_->emplace(std::move(result));
    return {};
  }

  bool given(size_t i) const { return values_[i] != nullptr; }
  bool none(size_t i) const { return values_[i]->kind() == kAcceptsNone; }
  const Tensor& tensor(size_t i) const { return *values_[i]->tensor(); }
  Tensor& mutable_tensor(size_t i) const { return *values_[i]->tensor(); }
  // Argument i as a tensor. A number becomes a tensor of rank 0 whose dtype is such that an op on it and argument
  // `like` has the same result type as an op on the number itself.
  Tensor tensor_or_number(size_t i, size_t like) const;
  // The same of rank 0 and f64 on the host, so that no digit of it is lost.
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
  std::span<const Value* const> values_;
  std::optional<Tensor>* one_;
};

}  // namespace tenon
