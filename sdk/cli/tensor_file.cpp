#include "sdk/cli/tensor_file.h"

#include <algorithm>
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

// Reads the file and returns decode(bytes).
template <class Decode>
auto read_file(const std::string& path, Decode decode) {
  if (std::filesystem::is_directory(path))
    throw Error(Code::invalid_argument, fmt::format("'{}' is a folder, not a file.", path));
  const std::string bytes = read_bytes(path);
  if (bytes.empty()) throw Error(Code::invalid_argument, fmt::format("'{}' is empty.", path));
  try {
    return decode(bytes);
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while reading '{}'", path)));
  }
}

// Returns a string for each line.
onnx::Value lines_of(const std::string& bytes, const onnx::ValueInfo& info) {
  std::istringstream text(bytes);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  Dims dims = Dims::filled(std::max<int32_t>(1, static_cast<int32_t>(info.dims.size())), 1);
  dims[0] = static_cast<int64_t>(lines.size());
  return onnx::Value::strings(dims, std::move(lines));
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
  if (!ends_with(path, ".npy") && !ends_with(path, ".pb")) throw unknown_extension(path);
  return read_file(path, [&](const std::string& bytes) {
    return ends_with(path, ".npy") ? npy_decode(bytes, device) : onnx::tensor_from_bytes(bytes, device);
  });
}

onnx::Value read_value_file(const std::string& path, const onnx::ValueInfo& info, Device device) {
  if (info.kind == onnx::Value::Kind::tensor && !info.optional) return read_tensor_file(path, device);
  const bool strings = info.kind == onnx::Value::Kind::strings;
  const bool npy = ends_with(path, ".npy"), lines = ends_with(path, ".txt") && strings;
  if (!npy && !lines && !ends_with(path, ".pb")) throw unknown_extension(path);
  return read_file(path, [&](const std::string& bytes) -> onnx::Value {
    if (lines) return lines_of(bytes, info);
    if (!npy) return onnx::value_from_bytes(bytes, info, device);
    return npy_holds_strings(bytes) ? npy_decode_strings(bytes) : onnx::Value(npy_decode(bytes, device));
  });
}

void write_tensor_file(const std::string& path, const Tensor& tensor, const std::string& name) {
  write_value_file(path, tensor, name);
}

void write_value_file(const std::string& path, const onnx::Value& value, const std::string& name) {
  const bool npy = ends_with(path, ".npy");
  if (!npy && !ends_with(path, ".pb")) throw unknown_extension(path);
  const bool strings = value.kind() == onnx::Value::Kind::strings;
  write_bytes(path, !npy      ? onnx::value_to_bytes(value, name)
                    : strings ? npy_encode_strings(value)
                              : npy_encode(value.tensor()));
}

}  // namespace tenon::cli
