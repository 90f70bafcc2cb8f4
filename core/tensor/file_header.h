// What the headers of tensor files have in common: how the formats call element types, and a reader of their text.
// Internal.
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
  std::string_view npy;   // without the order of bytes; empty: NumPy has it not
  std::string_view safe;  // empty: safetensors has it not
};
std::span<const Row> rows();
const Row* row_of(DType dtype);  // null: no format has it

// The bytes of a tensor; nothing if they are more than an int64 counts.
std::optional<uint64_t> byte_count(const std::vector<int64_t>& dims, DType dtype);
// Errors: invalid_argument (a rank that Tenon has not).
Dims checked_dims(std::string_view what, const std::vector<int64_t>& dims);

// Reads a text, sign by sign; white space between words does not count. `what` is what errors call the text.
// Errors: invalid_argument.
class HeaderReader {
 public:
  HeaderReader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  bool ended();
  bool take(char sign);
  bool take(std::string_view word);
  void expect(char sign);
  int64_t number();
  std::string text(std::string_view quotes);  // a text in `quotes`
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
