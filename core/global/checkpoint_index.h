// The index of a checkpoint: for each tensor, which file holds which elements. Internal to checkpoint.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/global/layout.h"
#include "core/tensor/files.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon::global {

struct StoredPart {
  int64_t file = 0;  // the number of the file in the index
  Box box;           // the elements that the file holds, stored under the tensor's name
};

struct IndexEntry {
  DType dtype = DType::none;
  Dims dims;
  std::vector<StoredPart> parts;  // without empty parts
};

struct CheckpointIndex {
  std::string path;                      // the name in errors
  std::map<int64_t, std::string> files;  // paths, by number
  std::map<std::string, IndexEntry, std::less<>> tensors;
  Metadata texts;

  // Reads the index of a checkpoint, or describes a single safetensors file. Errors: not_found, invalid_argument (no
  // index of this version of Tenon, files outside the folder, a malformed entry).
  static CheckpointIndex read(const std::string& path);
  // The texts of the index file.
  Metadata as_texts() const;
  // Throws unless the parts of the tensor cover each element exactly once. Errors: invalid_argument.
  void check_parts(std::string_view name) const;
  // The path of the file with this number. Errors: invalid_argument.
  const std::string& file(std::string_view name, int64_t number) const;
};

constexpr std::string_view kIndexName = "index.safetensors";

// "[0:3, 0:7]"
std::string to_string(const Box& box);

}  // namespace tenon::global
