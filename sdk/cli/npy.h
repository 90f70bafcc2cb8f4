// NumPy's .npy files, versions 1 to 3: dense tensors of bool, integers, f16, f32 and f64, and of strings.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Makes a tensor on `device` from the bytes of a .npy file. Fortran order becomes row-major order. Errors:
// invalid_argument (not a .npy file, an unsupported type, too few bytes for the shape).
Tensor npy_decode(std::string_view bytes, Device device);

// True if the file contains strings (NumPy's types U and S).
bool npy_holds_strings(std::string_view bytes);
// Returns the strings of such a file, in UTF-8. Errors: as npy_decode.
onnx::Value npy_decode_strings(std::string_view bytes);
// Returns the bytes of a .npy file of type U.
std::string npy_encode_strings(const onnx::Value& strings);

// Returns the bytes of a .npy file. NumPy has no bf16 and no f8, so they are written as f32.
std::string npy_encode(const Tensor& tensor);

}  // namespace tenon::cli
