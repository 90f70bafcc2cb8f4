#include "core/tensor/files.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "primitives/text/format.h"

namespace tenon {
namespace {

[[noreturn]] void refuse(std::string text) { throw Error(Code::invalid_argument, std::move(text)); }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, fmt::format("There is no file {} that can be read.", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) refuse(fmt::format("The file {} cannot be written.", path));
}

struct Row {
  DType dtype;
  std::string_view npy;   // without the order of bytes; empty: NumPy has it not
  std::string_view safe;  // empty: safetensors has it not
};
constexpr Row kRows[] = {
    {DType::boolean, "b1", "BOOL"}, {DType::i8, "i1", "I8"},          {DType::u8, "u1", "U8"},
    {DType::i16, "i2", "I16"},      {DType::u16, "u2", "U16"},        {DType::i32, "i4", "I32"},
    {DType::u32, "u4", "U32"},      {DType::i64, "i8", "I64"},        {DType::u64, "u8", "U64"},
    {DType::f16, "f2", "F16"},      {DType::f32, "f4", "F32"},        {DType::f64, "f8", "F64"},
    {DType::bf16, "", "BF16"},      {DType::f8e4m3fn, "", "F8_E4M3"}, {DType::f8e5m2, "", "F8_E5M2"}};

const Row* row_of(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

// The bytes of a tensor; nothing if they are more than an int64 counts.
std::optional<uint64_t> byte_count(const std::vector<int64_t>& dims, DType dtype) {
  auto count = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) || count >> 62 != 0) return {};
  }
  return count;
}

// What a text is read from, sign by sign.
class Reader {
 public:
  Reader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  bool ended() {
    skip();
    return at_ == text_.size();
  }
  bool take(char sign) {
    skip();
    if (at_ >= text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }
  void expect(char sign) {
    if (!take(sign)) refuse(fmt::format("{}: '{}' is missing at sign {} of the header.", what_, sign, at_));
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  int64_t number() {
    skip();
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        refuse(fmt::format("{}: a number of the header is beyond 64 bits.", what_));
      }
    }
    if (at_ == start) refuse(fmt::format("{}: a number is missing at sign {} of the header.", what_, at_));
    return value;
  }
  // A text in `quotes`.
  std::string text(std::string_view quotes) {
    skip();
    if (at_ >= text_.size() || quotes.find(text_[at_]) == std::string_view::npos) {
      refuse(fmt::format("{}: a text is missing at sign {} of the header.", what_, at_));
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
  std::vector<int64_t> numbers(char open, char close) {
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
  std::string_view what() const { return what_; }

 private:
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  void escaped(char sign, std::string* found) {
    constexpr std::string_view signs = "\"\\/bfnrt'", meant = "\"\\/\b\f\n\r\t'";
    if (const size_t i = signs.find(sign); i != std::string_view::npos) {
      *found += meant[i];
      return;
    }
    if (sign != 'u') refuse(fmt::format("{}: '\\{}' is no sign of a text.", what_, sign));
    uint32_t code = unit();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {  // the first of a pair
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + ((unit() - 0xdc00) & 0x3ff);
    }
    append_utf8(code, found);
  }
  uint32_t unit() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const size_t digit = at_ < text_.size() ? std::string_view("0123456789abcdef").find(text_[at_] | 0x20) : 99;
      if (digit > 15) refuse(fmt::format("{}: a sign of a text has no four digits.", what_));
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  }
  static void append_utf8(uint32_t code, std::string* found) {
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

  std::string_view what_, text_;
  size_t at_ = 0;
};

Dims checked_dims(std::string_view what, const std::vector<int64_t>& dims) {
  if (dims.size() > EP_MAX_RANK) {
    refuse(fmt::format("{}: a tensor of rank {} is beyond {}.", what, dims.size(), EP_MAX_RANK));
  }
  return Dims(dims);
}

// --- npy ---

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyHeader {
  DType dtype = DType::none;
  bool swapped = false;  // bytes are in the other order
  bool by_column = false;
  std::vector<int64_t> dims;
};

void read_descr(const std::string& text, NpyHeader* header) {
  const std::string_view descr = text;
  if (descr.size() < 2) refuse(fmt::format("npy: descr is '{}', which is no dtype.", text));
  header->swapped = descr[0] == '>';
  for (const Row& row : kRows) {
    if (!row.npy.empty() && row.npy == descr.substr(1) && std::string_view("<>|=").find(descr[0]) != descr.npos) {
      header->dtype = row.dtype;
    }
  }
  if (header->dtype == DType::none) refuse(fmt::format("npy: elements of '{}' are none of Tenon's.", text));
}

NpyHeader read_npy_header(std::string_view text) {
  Reader reader("npy", text);
  NpyHeader header;
  bool shaped = false;
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string key = reader.text("'\"");
    reader.expect(':');
    if (key == "descr") {
      read_descr(reader.text("'\""), &header);
    } else if (key == "fortran_order") {
      header.by_column = reader.take("True");
      if (!header.by_column && !reader.take("False")) refuse("npy: fortran_order is neither True nor False.");
    } else if (key == "shape") {
      header.dims = reader.numbers('(', ')');
      shaped = true;
    } else {
      refuse(fmt::format("npy: the header has the key '{}'.", key));
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (header.dtype == DType::none || !shaped || !reader.ended()) refuse("npy: the header lacks descr or shape.");
  return header;
}

// --- safetensors ---

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char sign : text) {
    if (sign == '"' || sign == '\\') result += '\\';
    if (static_cast<unsigned char>(sign) < 32) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(sign));
    } else {
      result += sign;
    }
  }
  return result + '"';
}

struct SafeEntry {
  std::string name;
  DType dtype = DType::none;
  std::vector<int64_t> dims;
  uint64_t begin = 0, end = 0;
};

SafeEntry read_entry(std::string name, Reader* reader) {
  SafeEntry entry;
  entry.name = std::move(name);
  int keys = 0;
  reader->expect('{');
  do {
    const std::string key = reader->text("\"");
    reader->expect(':');
    if (key == "dtype") {
      const std::string text = reader->text("\"");
      for (const Row& row : kRows) {
        if (row.safe == text) entry.dtype = row.dtype;
      }
      if (entry.dtype == DType::none) refuse(fmt::format("safetensors: '{}' has elements of {}.", entry.name, text));
      keys |= 1;
    } else if (key == "shape") {
      entry.dims = reader->numbers('[', ']');
      keys |= 2;
    } else if (key == "data_offsets") {
      const std::vector<int64_t> offsets = reader->numbers('[', ']');
      if (offsets.size() != 2) refuse(fmt::format("safetensors: '{}' has {} offsets.", entry.name, offsets.size()));
      entry.begin = static_cast<uint64_t>(offsets[0]);
      entry.end = static_cast<uint64_t>(offsets[1]);
      keys |= 4;
    } else {
      refuse(fmt::format("safetensors: '{}' has the key '{}'.", entry.name, key));
    }
  } while (reader->take(','));
  reader->expect('}');
  if (keys != 7) refuse(fmt::format("safetensors: '{}' lacks dtype, shape or data_offsets.", entry.name));
  return entry;
}

void read_metadata(Reader* reader, Metadata* metadata) {
  reader->expect('{');
  while (!reader->take('}')) {
    const std::string key = reader->text("\"");
    reader->expect(':');
    std::string value = reader->text("\"");
    if (metadata != nullptr) (*metadata)[key] = std::move(value);
    if (!reader->take(',')) {
      reader->expect('}');
      break;
    }
  }
}

std::vector<SafeEntry> read_safe_header(std::string_view text, Metadata* metadata) {
  Reader reader("safetensors", text);
  std::vector<SafeEntry> entries;
  reader.expect('{');
  while (!reader.take('}')) {
    std::string name = reader.text("\"");
    reader.expect(':');
    if (name == "__metadata__")
      read_metadata(&reader, metadata);
    else
      entries.push_back(read_entry(std::move(name), &reader));
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (!reader.ended()) refuse("safetensors: something follows the header.");
  return entries;
}

void check_extent(const SafeEntry& entry, uint64_t most) {
  const std::optional<uint64_t> bytes = byte_count(entry.dims, entry.dtype);
  if (entry.begin <= entry.end && entry.end <= most && bytes && *bytes == entry.end - entry.begin) return;
  refuse(fmt::format("safetensors: '{}' takes bytes {} to {} of {}, which does not fit its shape.", entry.name,
                     entry.begin, entry.end, most));
}

}  // namespace

std::string npy_to_bytes(const Tensor& tensor) {
  const Row* row = row_of(tensor.dtype());
  if (row == nullptr || row->npy.empty()) {
    throw Error(Code::unsupported, fmt::format("npy: NumPy has no elements of {}.", dtype_name(tensor.dtype())));
  }
  std::string shape;
  for (const int64_t dim : tensor.dims()) shape += fmt::format("{}, ", dim);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   dtype_size(tensor.dtype()) == 1 ? '|' : '<', row->npy, shape);
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += std::string_view("\x01\x00", 2);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + bytes_of(tensor);
}

Tensor npy_from_bytes(std::string_view bytes, Device device) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) refuse("npy: the file does not begin as a .npy does.");
  const int version = bytes[6];
  if (version < 1 || version > 3) refuse(fmt::format("npy: the version is {}; it may be 1 to 3.", version));
  const size_t digits = version == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < digits; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const size_t start = 8 + digits;
  if (length > bytes.size() - start) refuse(fmt::format("npy: a header of {} bytes ends beyond the file.", length));
  const NpyHeader header = read_npy_header(bytes.substr(start, length));
  std::string data(bytes.substr(start + length));
  const std::optional<uint64_t> wanted = byte_count(header.dims, header.dtype);
  if (!wanted || *wanted != data.size()) {
    refuse(fmt::format("npy: the file has {} bytes of elements, which is not what its shape needs.", data.size()));
  }
  const auto size = static_cast<size_t>(dtype_size(header.dtype));
  for (size_t i = 0; header.swapped && i < data.size(); i += size) std::reverse(&data[i], &data[i] + size);
  const Dims dims = checked_dims("npy", header.dims);
  if (!header.by_column) return Tensor::copy_from_host(data.data(), dims, header.dtype, device);
  // By columns: the row-major elements are those at the strides of a tensor whose first axis is the innermost.
  Dims strides = dims;
  int64_t step = 1;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    strides[axis] = step;
    step *= dims[axis];
  }
  const Tensor lent = Tensor::borrow(data.data(), dims, strides, header.dtype, [] {});
  std::string rows(data.size(), '\0');
  if (!rows.empty()) lent.copy_to_host(rows.data());
  return Tensor::copy_from_host(rows.data(), dims, header.dtype, device);
}

std::string safetensors_to_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  std::string header = "{", data;
  const auto next = [&] { header += header.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string texts;
    for (const auto& [key, value] : metadata)
      texts += fmt::format("{}{}:{}", texts.empty() ? "" : ",", quoted(key), quoted(value));
    header += fmt::format("\"__metadata__\":{{{}}}", texts);
  }
  for (const auto& [name, tensor] : tensors) {
    const Row* row = tensor.defined() ? row_of(tensor.dtype()) : nullptr;
    if (row == nullptr) {
      throw Error(Code::unsupported, fmt::format("safetensors: '{}' has elements that the format has not.", name));
    }
    std::string dims;
    for (const int64_t dim : tensor.dims()) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
    next();
    const size_t begin = data.size();
    data += bytes_of(tensor);
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(name), row->safe,
                          dims, begin, data.size());
  }
  header += "}";
  while ((header.size() + 8) % 64 != 0) header += ' ';
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

NamedTensors safetensors_from_bytes(std::string_view bytes, Device device, Metadata* metadata) {
  if (bytes.size() < 8) refuse("safetensors: the file is shorter than the length of its header.");
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (length > bytes.size() - 8) refuse(fmt::format("safetensors: a header of {} bytes ends beyond the file.", length));
  const std::string_view data = bytes.substr(8 + static_cast<size_t>(length));
  std::vector<SafeEntry> entries = read_safe_header(bytes.substr(8, static_cast<size_t>(length)), metadata);
  std::sort(entries.begin(), entries.end(), [](const SafeEntry& a, const SafeEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  NamedTensors tensors;
  for (const SafeEntry& entry : entries) {
    check_extent(entry, data.size());
    if (entry.begin != at) {
      refuse(fmt::format("safetensors: '{}' begins at byte {}, but the tensors before it end at {}.", entry.name,
                         entry.begin, at));
    }
    at = entry.end;
    const Dims dims = checked_dims("safetensors", entry.dims);
    if (!tensors.emplace(entry.name, Tensor::copy_from_host(data.data() + entry.begin, dims, entry.dtype, device))
             .second) {
      refuse(fmt::format("safetensors: there are two tensors '{}'.", entry.name));
    }
  }
  if (at != data.size()) refuse(fmt::format("safetensors: the tensors end at byte {} of {}.", at, data.size()));
  return tensors;
}

void save_npy(const std::string& path, const Tensor& tensor) { write_file(path, npy_to_bytes(tensor)); }
Tensor load_npy(const std::string& path, Device device) { return npy_from_bytes(read_file(path), device); }
void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  write_file(path, safetensors_to_bytes(tensors, metadata));
}
NamedTensors load_safetensors(const std::string& path, Device device, Metadata* metadata) {
  return safetensors_from_bytes(read_file(path), device, metadata);
}

}  // namespace tenon
