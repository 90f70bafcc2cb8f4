// The format safetensors: a length, a header that says where each tensor's elements are, and the elements, row-major.
// Internal; files.h has what applications call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/tensor/file_access.h"
#include "core/tensor/files.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon::files {

// What a header says of a tensor; `begin`: where its elements begin in the file.
struct StoredTensor {
  DType dtype = DType::none;
  Dims dims;
  uint64_t begin = 0;
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// Reads a header of `header`, after which the file has `data_bytes` of elements. Errors: those of load_safetensors.
StoredTensors read_safetensors_header(std::string_view header, uint64_t data_bytes, Metadata* metadata);

// A file whose header was read, and whose elements are read by parts.
class SafetensorsFile {
 public:
  // Errors: those of load_safetensors; they name the file.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const StoredTensors& tensors() const { return tensors_; }
  const Metadata& texts() const { return texts_; }
  // The file, open as long as the caller keeps it. Errors: not_found.
  FileReader open() const { return FileReader(path_); }

 private:
  std::string path_;
  StoredTensors tensors_;
  Metadata texts_;
};

}  // namespace tenon::files
