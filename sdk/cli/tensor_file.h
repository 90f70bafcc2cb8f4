// Reads and writes tensors in files: .npy (NumPy) or .pb (ONNX's TensorProto).
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace tenon::cli {

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

Tensor read_tensor_file(const std::string& path, Device device);
// A .pb file stores `name`.
void write_tensor_file(const std::string& path, const Tensor& tensor, const std::string& name);

}  // namespace tenon::cli
