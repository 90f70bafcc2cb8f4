#include "core/tensor/file_header.h"

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::files {
namespace {

constexpr Row kRows[] = {
    {DType::boolean, "b1", "BOOL"}, {DType::i8, "i1", "I8"},          {DType::u8, "u1", "U8"},
    {DType::i16, "i2", "I16"},      {DType::u16, "u2", "U16"},        {DType::i32, "i4", "I32"},
    {DType::u32, "u4", "U32"},      {DType::i64, "i8", "I64"},        {DType::u64, "u8", "U64"},
    {DType::f16, "f2", "F16"},      {DType::f32, "f4", "F32"},        {DType::f64, "f8", "F64"},
    {DType::bf16, "", "BF16"},      {DType::f8e4m3fn, "", "F8_E4M3"}, {DType::f8e5m2, "", "F8_E5M2"}};

}  // namespace

void refuse(std::string text) { throw Error(Code::invalid_argument, std::move(text)); }

std::span<const Row> rows() { return kRows; }

const Row* row_of(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

std::optional<uint64_t> byte_count(const std::vector<int64_t>& dims, DType dtype) {
  auto count = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) || count >> 62 != 0) return {};
  }
  return count;
}

Dims checked_dims(std::string_view what, const std::vector<int64_t>& dims) {
  if (dims.size() > EP_MAX_RANK) {
    refuse(fmt::format("{}: a tensor of rank {} is beyond {}.", what, dims.size(), EP_MAX_RANK));
  }
  return Dims(dims);
}

// --- HeaderReader

bool HeaderReader::ended() {
  skip();
  return at_ == text_.size();
}

bool HeaderReader::take(char sign) {
  skip();
  if (at_ >= text_.size() || text_[at_] != sign) return false;
  ++at_;
  return true;
}

void HeaderReader::expect(char sign) {
  if (!take(sign)) refuse(fmt::format("{}: '{}' is missing at character {} of the header.", what_, sign, at_));
}

bool HeaderReader::take(std::string_view word) {
  skip();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

int64_t HeaderReader::number() {
  skip();
  const size_t start = at_;
  int64_t value = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
      refuse(fmt::format("{}: a number of the header is beyond 64 bits.", what_));
    }
  }
  if (at_ == start) refuse(fmt::format("{}: a number is missing at character {} of the header.", what_, at_));
  return value;
}

std::string HeaderReader::text(std::string_view quotes) {
  skip();
  if (at_ >= text_.size() || quotes.find(text_[at_]) == std::string_view::npos) {
    refuse(fmt::format("{}: a quoted text is missing at character {} of the header.", what_, at_));
  }
  const char quote = text_[at_++];
  std::string found;
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] != '\\') {
      found += text_[at_++];
      continue;
    }
    if (++at_ >= text_.size()) break;
    escaped(text_[at_++], &found);
  }
  expect(quote);
  return found;
}

std::vector<int64_t> HeaderReader::numbers(char open, char close) {
  expect(open);
  std::vector<int64_t> found;
  while (!take(close)) {
    found.push_back(number());
    if (!take(',')) {
      expect(close);
      break;
    }
  }
  return found;
}

void HeaderReader::skip() {
  while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
}

void HeaderReader::escaped(char sign, std::string* found) {
  constexpr std::string_view signs = "\"\\/bfnrt'", meant = "\"\\/\b\f\n\r\t'";
  if (const size_t i = signs.find(sign); i != std::string_view::npos) {
    *found += meant[i];
    return;
  }
  if (sign != 'u') refuse(fmt::format("{}: '\\{}' is not a valid escape in a text.", what_, sign));
  uint32_t code = unit();
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {  // the first half of a surrogate pair
    at_ += 2;
    code = 0x10000 + ((code - 0xd800) << 10) + ((unit() - 0xdc00) & 0x3ff);
  }
  append_utf8(code, found);
}

uint32_t HeaderReader::unit() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const size_t digit = at_ < text_.size() ? std::string_view("0123456789abcdef").find(text_[at_] | 0x20) : 99;
    if (digit > 15) refuse(fmt::format("{}: an escape in a text lacks four hexadecimal digits.", what_));
    code = code * 16 + static_cast<uint32_t>(digit);
  }
  return code;
}

void HeaderReader::append_utf8(uint32_t code, std::string* found) {
  const auto add = [&](uint32_t byte) { *found += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 63));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 63));
    add(0x80 | (code >> 6 & 63));
  }
  add(0x80 | (code & 63));
}

}  // namespace tenon::files
