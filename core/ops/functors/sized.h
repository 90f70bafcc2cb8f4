// Records whose attributes are sizes that may be expressions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/ops/functors/apply.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "core/ops/sym_call.h"

namespace tenon::functors {

// An attribute struct with numbers that may be expressions: the struct gets their hints, the record the patches.
template <class T>
class Sized {
 public:
  T attributes{};

  // `field` is an i64 of `attributes`.
  void set(int64_t* field, SymDim size) {
    *field = hint_of(size);
    if (size.is_number()) return;
    patches_.list.push_back({static_cast<uint32_t>(field - reinterpret_cast<int64_t*>(&attributes)), size});
  }
  void set(DimsAttribute* list, std::span<const SymDim> sizes) {
    list->rank = static_cast<int64_t>(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) set(&list->values[i], sizes[i]);
  }
  const Patches* patches() const { return patches_.list.empty() ? nullptr : &patches_; }

 private:
  Patches patches_;
};

template <class T>
Tensor apply(OpId id, std::initializer_list<const Tensor*> inputs, const Sized<T>& sized, Scalars scalars = {},
             Tensor* out = nullptr, DeviceState* device = nullptr) {
  Tensor result;
  OpCall call;
  call.op = &op_row(id);
  call.inputs = {inputs.begin(), inputs.size()};
  call.scalars = scalars;
  call.attributes = &sized.attributes;
  call.patches = sized.patches();
  call.device = device;
  call.outputs = {out == nullptr ? &result : out, 1};
  submit(call);
  return call.outputs[0];
}

// `list` as a shape of at most EP_MAX_RANK sizes, which may still be negative.
SymDims sym_dims_of(std::string_view op, const IntList& list);

// The shape of `tensor` as an argument; expressions for an open tensor.
class ShapeOf {
 public:
  explicit ShapeOf(const Tensor& tensor) : tensor_(tensor) {
    if (is_open(tensor)) sizes_ = SizeList(sizes(tensor));
  }
  IntList list() const { return is_open(tensor_) ? IntList(sizes_) : IntList(tensor_.dims()); }

 private:
  const Tensor& tensor_;
  SizeList sizes_;
};

}  // namespace tenon::functors
