// The index of a checkpoint: which file has which elements of which tensor. Internal to checkpoint.cpp.
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
  int64_t file = 0;  // its number among those of the index
  Box box;           // what the file has of the tensor, under the tensor's name
};

struct IndexEntry {
  DType dtype = DType::none;
  Dims dims;
  std::vector<StoredPart> parts;  // without empty ones
};

struct CheckpointIndex {
  std::string path;                      // what errors call it
  std::map<int64_t, std::string> files;  // paths, by number
  std::map<std::string, IndexEntry, std::less<>> tensors;
  Metadata texts;

  // Of a checkpoint or one safetensors file. Errors: not_found, invalid_argument (no index of this version of Tenon,
  // files outside of the folder, a text that is none of an entry).
  static CheckpointIndex read(const std::string& path);
  // As the texts of its file.
  Metadata as_texts() const;
  // Throws unless the parts of a tensor have each of its elements once. Errors: invalid_argument.
  void check_parts(std::string_view name) const;
  // That of a file of this number. Errors: invalid_argument.
  const std::string& file(std::string_view name, int64_t number) const;
};

constexpr std::string_view kIndexName = "index.safetensors";

// "[0:3, 0:7]"
std::string to_string(const Box& box);

}  // namespace tenon::global
