// Shared by the formats of tensor files: their names of element types, and a reader of their text headers. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon::files {

// Throws: invalid_argument.
[[noreturn]] void refuse(std::string text);

struct Row {
  DType dtype;
  std::string_view npy;   // without byte order; empty: NumPy lacks the dtype
  std::string_view safe;  // empty: safetensors lacks the dtype
};
std::span<const Row> rows();
const Row* row_of(DType dtype);  // null: no format supports it

// The bytes of a tensor; nothing if they exceed an int64.
std::optional<uint64_t> byte_count(const std::vector<int64_t>& dims, DType dtype);
// Errors: invalid_argument (a rank that Tenon does not support).
Dims checked_dims(std::string_view what, const std::vector<int64_t>& dims);

// Reads a text character by character and skips white space between tokens. `what` names the text in errors. Errors:
// invalid_argument.
class HeaderReader {
 public:
  HeaderReader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  bool ended();
  bool take(char sign);
  bool take(std::string_view word);
  void expect(char sign);
  int64_t number();
  std::string text(std::string_view quotes);  // a string in `quotes`
  std::vector<int64_t> numbers(char open, char close);

 private:
  void skip();
  void escaped(char sign, std::string* found);
  uint32_t unit();
  static void append_utf8(uint32_t code, std::string* found);

  std::string_view what_, text_;
  size_t at_ = 0;
};

}  // namespace tenon::files
