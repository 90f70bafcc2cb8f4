// Tensors as text, laid out as NumPy lays them out: columns aligned, as many digits as tell the value from its
// neighbours in its dtype, at most eight after the point. Below stand dtype, shape and device:
//
//   [[ 1.5     2.    ]
//    [-0.0625  3.    ]]
//   f32 [2, 2] cpu:0
//
// Of more than 1000 elements, axes longer than 6 show their first and last 3, and nothing else is read of them.
#pragma once

#include <iosfwd>
#include <string>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// An undefined tensor is "undefined"; a value of a program being recorded has no elements to show. Waits for the
// elements. Errors: those of Tensor::copy_to_host.
TENON_API std::string to_string(const Tensor& tensor);
TENON_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tenon
