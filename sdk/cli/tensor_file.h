// Reads and writes values in files: .npy (NumPy), .pb (ONNX's TensorProto) or, for strings, .txt (a string per line).
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

Tensor read_tensor_file(const std::string& path, Device device);
// Reads a value of any type. `info` gives the type of a .pb file and the rank of the strings of a .txt file: all axes
// after the first have length 1.
onnx::Value read_value_file(const std::string& path, const onnx::ValueInfo& info, Device device);
// Writes strings or numbers as .npy or .pb. Errors: invalid_argument (a value of another type).
void write_value_file(const std::string& path, const onnx::Value& value, const std::string& name);
// A .pb file stores `name`.
void write_tensor_file(const std::string& path, const Tensor& tensor, const std::string& name);

}  // namespace tenon::cli
