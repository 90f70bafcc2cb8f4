#include "sdk/cli/tensor_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "primitives/text/format.h"
#include "sdk/cli/npy.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Error unknown_extension(const std::string& path) {
  return Error(Code::invalid_argument,
               fmt::format("'{}' ends neither in .npy nor in .pb, the two kinds of tensor files.", path));
}

}  // namespace

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, fmt::format("'{}' cannot be read: {}.", path, std::strerror(errno)));
  std::stringbuf bytes;
  file >> std::noskipws >> &bytes;
  if (file.bad()) throw Error(Code::internal, fmt::format("Reading '{}' failed.", path));
  return std::move(bytes).str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error(Code::internal, fmt::format("'{}' cannot be written: {}.", path, std::strerror(errno)));
}

Tensor read_tensor_file(const std::string& path, Device device) {
  const bool npy = ends_with(path, ".npy");
  if (!npy && !ends_with(path, ".pb")) throw unknown_extension(path);
  if (std::filesystem::is_directory(path))
    throw Error(Code::invalid_argument, fmt::format("'{}' is a folder, not a file.", path));
  const std::string bytes = read_bytes(path);
  if (bytes.empty()) throw Error(Code::invalid_argument, fmt::format("'{}' is empty.", path));
  try {
    return npy ? npy_decode(bytes, device) : onnx::tensor_from_bytes(bytes, device);
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while reading '{}'", path)));
  }
}

void write_tensor_file(const std::string& path, const Tensor& tensor, const std::string& name) {
  const bool npy = ends_with(path, ".npy");
  if (!npy && !ends_with(path, ".pb")) throw unknown_extension(path);
  write_bytes(path, npy ? npy_encode(tensor) : onnx::tensor_to_bytes(tensor, name));
}

}  // namespace tenon::cli
