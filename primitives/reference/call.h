// One run of a reference kernel: operands with their addresses, launch scalars, and the first fault.
#pragma once

#include <cstdint>
#include <span>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/status/status.h"

namespace tenon::reference {

// An operand and its address. An index has one number per axis; `at` returns the offset in elements.
struct Operand {
  const ep_operand_desc* desc = nullptr;
  void* data = nullptr;
  const ep_scalar* scalar = nullptr;  // instead of data, for EP_OPERAND_FLAG_SCALAR

  explicit operator bool() const { return desc != nullptr; }
  DType dtype() const { return static_cast<DType>(desc->dtype); }
  int32_t rank() const { return desc->rank; }
  int64_t dim(int64_t axis) const { return desc->dims[axis]; }
  std::span<const int64_t> dims() const { return {desc->dims, static_cast<size_t>(desc->rank)}; }

  int64_t at(const int64_t* index) const {
    int64_t offset = 0;
    for (int32_t axis = 0; axis < desc->rank; ++axis) offset += index[axis] * desc->strides[axis];
    return offset;
  }
  template <class T>
  T get(const int64_t* index) const {
    return scalar != nullptr ? scalar_element<T>(*scalar) : load<T>(dtype(), data, at(index));
  }
  template <class T>
  void set(const int64_t* index, T value) const {
    store<T>(dtype(), data, at(index), value);
  }
};

struct Call {
  const ep_primitive_desc& desc;
  void* const* operands;
  std::span<const ep_scalar> scalars;
  ep_fault fault = {};  // the first fault; code 0: none

  Operand find(int32_t role) const;
  Operand operator[](int32_t role) const { return find(role); }
  // Launch scalar `slot`: the baked one if there is one; 0 if it was not given.
  ep_scalar scalar(int32_t slot) const;
  template <class T>
  T parameter(int32_t slot) const {
    return scalar_value<T>(scalar(slot));
  }
  void report(int32_t code, int32_t role, int64_t value, int64_t limit);
};

// Calls visit(index) for every index within `dims`, in row-major order.
template <class Visit>
void for_each_index(std::span<const int64_t> dims, Visit&& visit) {
  int64_t index[EP_MAX_RANK] = {};
  for (int64_t dim : dims) {
    if (dim == 0) return;
  }
  for (;;) {
    visit(static_cast<const int64_t*>(index));
    auto axis = static_cast<int64_t>(dims.size()) - 1;
    while (axis >= 0 && ++index[axis] == dims[static_cast<size_t>(axis)]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

// One kernel per kind.
#define EP_PRIMITIVE(name, id, attributes, alias) void run_##name(Call& call);
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE

}  // namespace tenon::reference
