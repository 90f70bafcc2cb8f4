// The safetensors format: a length, a header with the position of each tensor's elements, and the elements, row-major.
// Internal; files.h has the public functions.
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

// A tensor as a header describes it; `begin` is the position of its elements in the file.
struct StoredTensor {
  DType dtype = DType::none;
  Dims dims;
  uint64_t begin = 0;
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// Parses the header text `header`, which `data_bytes` bytes of elements follow. Errors: those of load_safetensors.
StoredTensors read_safetensors_header(std::string_view header, uint64_t data_bytes, Metadata* metadata);

// A file whose header has been read and whose elements are read in parts.
class SafetensorsFile {
 public:
  // Errors: those of load_safetensors; they name the file.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const StoredTensors& tensors() const { return tensors_; }
  const Metadata& texts() const { return texts_; }
  // Opens the file again for the caller. Errors: not_found.
  FileReader open() const { return FileReader(path_); }

 private:
  std::string path_;
  StoredTensors tensors_;
  Metadata texts_;
};

}  // namespace tenon::files
