// NumPy's .npy files, versions 1 to 3: dense tensors of bool, integers, f16, f32 and f64.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon::cli {

// A tensor on `device` from the bytes of a .npy file; Fortran order is turned round. Errors: invalid_argument (not such
// a file, a type Tenon does not have, less data than the shape needs).
Tensor npy_decode(std::string_view bytes, Device device);

// The bytes of a .npy file. bf16 and f8, which NumPy does not have, are written as f32.
std::string npy_encode(const Tensor& tensor);

}  // namespace tenon::cli
