// Reads and writes values in files: .npy (NumPy), .pb (ONNX's TensorProto) or, for strings, .txt (a string per line).
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

Tensor read_tensor_file(const std::string& path, Device device);
// The same of any value; `info` says what a .pb file holds, and how many axes the lines of a .txt file have: all but
// the first are of length 1.
onnx::Value read_value_file(const std::string& path, const onnx::ValueInfo& info, Device device);
// Strings and numbers, as .npy or .pb. Errors: invalid_argument (the value is neither).
void write_value_file(const std::string& path, const onnx::Value& value, const std::string& name);
// A .pb file stores `name`.
void write_tensor_file(const std::string& path, const Tensor& tensor, const std::string& name);

}  // namespace tenon::cli
