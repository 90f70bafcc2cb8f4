// Tensors as files: NumPy's .npy, and safetensors. Files are untrusted input: sizes are checked against the length of
// the file before memory is allocated.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// Writes `tensor` as .npy, row-major. Errors: unsupported (a dtype that NumPy lacks), invalid_argument (the file cannot
// be written).
TENON_API void save_npy(const std::string& path, const Tensor& tensor);
// Reads a .npy file of version 1 to 3, in either axis order and either byte order. Errors: not_found, invalid_argument
// (not a .npy file, a dtype that Tenon lacks, a length that does not match the shape).
TENON_API Tensor load_npy(const std::string& path, Device device = {});

using NamedTensors = std::map<std::string, Tensor, std::less<>>;
using Metadata = std::map<std::string, std::string, std::less<>>;

// Writes named tensors and named texts as a safetensors file, each tensor aligned to 64 bytes. Errors: unsupported (a
// dtype that the format lacks), invalid_argument (the file cannot be written).
TENON_API void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {});
// Reads all tensors and texts of a safetensors file. Errors: not_found, invalid_argument (a malformed header; tensors
// that overlap, have gaps or end beyond the file).
TENON_API NamedTensors load_safetensors(const std::string& path, Device device = {}, Metadata* metadata = nullptr);

// Like the functions above, but from and to bytes in memory.
TENON_API Tensor npy_from_bytes(std::string_view bytes, Device device = {});
TENON_API std::string npy_to_bytes(const Tensor& tensor);
TENON_API NamedTensors safetensors_from_bytes(std::string_view bytes, Device device = {}, Metadata* metadata = nullptr);
TENON_API std::string safetensors_to_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

}  // namespace tenon
