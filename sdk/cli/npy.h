// NumPy's .npy files, versions 1 to 3: dense tensors of bool, integers, f16, f32 and f64, and of strings.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// A tensor on `device` from the bytes of a .npy file. Fortran order becomes row-major order. Errors: invalid_argument
// (no .npy file, a type that Tenon lacks, too few bytes for the shape).
Tensor npy_decode(std::string_view bytes, Device device);

// True if the file holds strings, NumPy's types U and S.
bool npy_holds_strings(std::string_view bytes);
// Those strings, in UTF-8. Errors: as npy_decode.
onnx::Value npy_decode_strings(std::string_view bytes);
// A .npy file of the type U.
std::string npy_encode_strings(const onnx::Value& strings);

// The bytes of a .npy file. NumPy has no bf16 and no f8, so they are written as f32.
std::string npy_encode(const Tensor& tensor);

}  // namespace tenon::cli
