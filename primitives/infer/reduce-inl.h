// The rule of reduce.h for sizes of any type.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::infer {

template <class T>
BasicDims<T> reduce(const BasicDims<T>& dims, uint32_t axes, bool keep_dims) {
  BasicDims<T> result;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if ((axes >> axis & 1) == 0) {
      result.push_back(dims[axis]);
    } else if (keep_dims) {
      result.push_back(1);
    }
  }
  return result;
}

template <class T>
T reduced_count(const BasicDims<T>& dims, uint32_t axes) {
  T count = 1;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (axes >> axis & 1) count *= dims[axis];
  }
  return count;
}

template <class T>
Status require_elements(std::string_view op, const BasicDims<T>& dims, uint32_t axes) {
  if (expect(min_size(element_count(reduce(dims, axes, false)), T(1)) <= reduced_count(dims, axes))) return {};
  return wrong(op, "cannot reduce shape {} over an axis of length 0: the result has no value.", dims);
}

}  // namespace tenon::infer
