// Layout: a device's own layout for values of one dtype and dims (ep_api.h, "Opaque operands").
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon {

// Two values of a device have the same layout if their Layouts are equal.
class Layout {
 public:
  Layout(DType dtype, const Dims& dims, int64_t token) {
    operand_.dtype = static_cast<int32_t>(dtype);
    operand_.rank = dims.rank();
    std::copy(dims.begin(), dims.end(), operand_.dims);
    operand_.flags = EP_OPERAND_FLAG_OPAQUE;
    operand_.strides[0] = token;
  }

  // The operand of a descriptor with this layout. It has no role.
  const ep_operand_desc& operand() const { return operand_; }
  int64_t token() const { return operand_.strides[0]; }
  DType dtype() const { return static_cast<DType>(operand_.dtype); }
  Dims dims() const { return Dims(std::span(operand_.dims, static_cast<size_t>(operand_.rank))); }
  friend bool operator==(const Layout& a, const Layout& b) {
    return std::memcmp(&a.operand_, &b.operand_, sizeof a.operand_) == 0;
  }

 private:
  ep_operand_desc operand_{};
};

}  // namespace tenon
