// Lines: the elements of an operand along one axis, for every index of the other axes.
#pragma once

#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {

// The lines of one operand. `base` is NULL if the operand is absent.
struct Lines {
  char* base = nullptr;
  Axes outer;  // the other axes
  int64_t length = 0;
  int64_t stride = 0;  // in elements, like the strides of `outer`
  int64_t size = 0;    // bytes of an element

  Lines() = default;
  Lines(const ep_primitive_desc& desc, const ep_launch& launch, int32_t number, int32_t axis) {
    if (number < 0) return;
    const OperandShape shape = shape_of(desc.operands[number], launch.shapes, static_cast<uint32_t>(number));
    *this = Lines(shape, address_of(launch.operands[number]), dtype_size(desc.operands[number].dtype), axis);
  }
  Lines(const OperandShape& shape, char* address, int64_t element_size, int32_t axis)
      : base(address),
        outer(axes_of(shape, 1U << axis, false)),
        length(shape.dims[axis]),
        stride(shape.strides[axis]),
        size(element_size) {}
  explicit operator bool() const { return base != nullptr; }
  char* line(int64_t number) const { return base + outer.offset(number) * size; }
};

// The reason why a sort along `axis` of SRC into DST, DST_INDICES or both is refused.
Refusal why_not_ordered(const ep_primitive_desc& desc, int32_t axis, ep_support_info& info);

}  // namespace tenon::provider::cpu
