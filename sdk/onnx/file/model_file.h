// ModelFile: a model file in memory, without the elements of large weights. Those are read on first use, directly to
// their destination (core/tensor/unread.h). Nothing is mapped: if the file changes meanwhile, reading fails with an
// error instead of a signal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/status/status.h"
#include "sdk/onnx/file/file.h"

namespace tenon::onnx {

// Weights of at least this many bytes are left out and read on first use.
constexpr uint64_t kLargeWeight = 64 << 10;

class ModelFile {
 public:
  // Reads the regular file at `path`. Errors: not_found; invalid_argument (not a regular file, larger than `limit`).
  static Result<ModelFile> open(const std::string& path, uint64_t limit);
  ModelFile(ModelFile&& other) noexcept;
  ModelFile& operator=(ModelFile&&) = delete;
  ~ModelFile();

  // The bytes of the file. The elements of large weights (TensorProto.raw_data of an initializer) are zeros.
  std::string_view bytes() const { return {begin_, size_}; }
  // Copies `part` of bytes() to `out`, with the elements that were left out. Errors: the file has changed since it was
  // opened; reading failed.
  Status read(std::string_view part, void* out) const;
  // Like `read`, as a function that outlives this object. Empty if nothing of `part` was left out.
  std::function<Status(void* out)> reader(std::string_view part) const;

 private:
  friend class Scanner;
  struct Hole {
    uint64_t begin = 0, end = 0;
  };
  ModelFile() = default;
  bool left_out(std::string_view part) const;

  std::shared_ptr<const OpenFile> file_;
  char* begin_ = nullptr;
  uint64_t size_ = 0;
  std::vector<Hole> holes_;  // indexed by offset
};

}  // namespace tenon::onnx
