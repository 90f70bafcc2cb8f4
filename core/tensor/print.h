// Tensors as text, laid out as NumPy lays them out: columns aligned, as many digits as tell the value from its
// neighbours in its dtype, at most eight after the point. Below stand dtype, shape and device:
//
//   [[ 1.5     2.    ]
//    [-0.0625  3.    ]]
//   f32 [2, 2] cpu:0
//
// A tensor of more than 1000 elements shows only the first and last 3 of each axis longer than 6, and only these are
// read.
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

// "[2, 3]", "f32", "cuda:0", and a number as it is written.
TENON_API std::ostream& operator<<(std::ostream& out, const Dims& dims);
TENON_API std::ostream& operator<<(std::ostream& out, DType dtype);
TENON_API std::ostream& operator<<(std::ostream& out, Device device);
TENON_API std::ostream& operator<<(std::ostream& out, const Scalar& number);

}  // namespace tenon
