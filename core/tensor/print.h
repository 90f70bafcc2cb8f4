// Prints tensors in NumPy's layout: columns are aligned, and each number has the digits that tell it from its
// neighbours in its dtype, at most eight after the point. The last line shows dtype, shape and device:
//
//   [[ 1.5     2.    ]
//    [-0.0625  3.    ]]
//   f32 [2, 2] cpu:0
//
// For a tensor of more than 1000 elements, only the first and last 3 of each axis longer than 6 are shown and read.
#pragma once

#include <iosfwd>
#include <string>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// An undefined tensor is "undefined"; a value of a program being recorded prints without elements. Waits for the
// elements. Errors: those of Tensor::copy_to_host.
TENON_API std::string to_string(const Tensor& tensor);
TENON_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Prints "[2, 3]", "f32", "cuda:0", or the number of a scalar.
TENON_API std::ostream& operator<<(std::ostream& out, const Dims& dims);
TENON_API std::ostream& operator<<(std::ostream& out, DType dtype);
TENON_API std::ostream& operator<<(std::ostream& out, Device device);
TENON_API std::ostream& operator<<(std::ostream& out, const Scalar& number);

}  // namespace tenon
