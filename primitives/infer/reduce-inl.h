// The rule of reduce.h for sizes of any type.
#pragma once

#include "primitives/shape/shape.h"

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

}  // namespace tenon::infer
