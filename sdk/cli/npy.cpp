#include "sdk/cli/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeRow {
  DType dtype;
  const char* descr;
};
constexpr TypeRow kTypes[] = {
    {DType::boolean, "|b1"}, {DType::i8, "|i1"},  {DType::u8, "|u1"},  {DType::i16, "<i2"},
    {DType::u16, "<u2"},     {DType::i32, "<i4"}, {DType::u32, "<u4"}, {DType::i64, "<i8"},
    {DType::u64, "<u8"},     {DType::f16, "<f2"}, {DType::f32, "<f4"}, {DType::f64, "<f8"},
};

[[noreturn]] void bad(const std::string& what) {
  throw Error(Code::invalid_argument, fmt::format("This is not a usable .npy file: {}.", what));
}

// Returns the text after 'key': in the header, which is a Python dict literal.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) bad(fmt::format("its header has no '{}'", key));
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) bad("its header is cut off");
  std::string_view rest = header.substr(colon + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

// Returns the element type, such as "<f4".
std::string_view read_descr(std::string_view header) {
  std::string_view value = value_of(header, "descr");
  const size_t end = value.size() > 1 && value[0] == '\'' ? value.find('\'', 1) : std::string_view::npos;
  if (end == std::string_view::npos) bad("its elements are records, which a tensor cannot hold");
  return value.substr(1, end - 1);
}

DType read_type(std::string_view header) {
  const std::string_view value = read_descr(header);
  for (const TypeRow& row : kTypes) {
    const std::string_view known = row.descr;
    const bool any_order = known[0] == '|' && value.size() == 3;
    if (value == known || (any_order && value.substr(1) == known.substr(1))) return row.dtype;
  }
  bad(
      fmt::format("its element type '{}' is not one of bool, i1 to i8, u1 to u8, f2, f4, f8 in little-endian order, U "
                  "or S",
                  value));
}

Dims read_dims(std::string_view header) {
  std::string_view value = value_of(header, "shape");
  const size_t end = value.find(')');
  if (value.empty() || value[0] != '(' || end == std::string_view::npos) bad("its shape is not a tuple");
  value = value.substr(1, end - 1);
  Dims dims;
  while (true) {
    while (!value.empty() && (value.front() == ' ' || value.front() == ',')) value.remove_prefix(1);
    if (value.empty()) return dims;
    int64_t dim = 0;
    const auto result = std::from_chars(value.data(), value.data() + value.size(), dim);
    if (result.ec != std::errc() || dim < 0)
      bad(fmt::format("its shape holds '{}', which is not a length", value.substr(0, 20)));
    if (dims.rank() == EP_MAX_RANK) bad(fmt::format("its rank is more than {}", EP_MAX_RANK));
    dims.push_back(dim);
    value.remove_prefix(static_cast<size_t>(result.ptr - value.data()));
  }
}

const char* descr_of(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.descr;
  }
  return nullptr;
}

struct NpyFile {
  std::string_view header, data;
};

NpyFile parts_of(std::string_view bytes) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) bad("it does not begin with \\x93NUMPY");
  const auto major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3) bad(fmt::format("its version is {}; 1 to 3 are known", major));
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) bad("its header is cut off");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{static_cast<uint8_t>(bytes[8 + i])} << (8 * i);
  if (length > bytes.size() - 8 - length_bytes) bad("its header is cut off");
  return {bytes.substr(8 + length_bytes, length), bytes.substr(8 + length_bytes + length)};
}

// Returns the file up to its elements.
std::string start_of_file(std::string_view descr, const Dims& dims) {
  std::string shape;
  for (int64_t dim : dims) shape += fmt::format("{}, ", dim);
  if (dims.rank() > 1) shape.resize(shape.size() - 2);
  if (dims.rank() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return bytes + header;
}

// ---- strings: elements of one length, shorter ones padded with zeros ----

void append_utf8(uint32_t code, std::string* text) {
  if (code < 0x80) {
    *text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  *text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more; i-- > 0;) *text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

// Returns the code points of a UTF-8 string. An invalid byte becomes the code point with its value.
std::vector<uint32_t> code_points(const std::string& text) {
  std::vector<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at]);
    size_t more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t code = more == 0 ? first : first & (0x3fu >> more);
    for (size_t i = 1; i <= more; ++i) {
      const auto byte = at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0};
      if ((byte & 0xc0) != 0x80) {
        more = 0;
        code = first;
        break;
      }
      code = code << 6 | (byte & 0x3f);
    }
    codes.push_back(code);
    at += more + 1;
  }
  return codes;
}

std::string element_text(std::string_view element, bool wide) {
  std::string text;
  if (!wide) return std::string(element.substr(0, element.find_last_not_of('\0') + 1));
  std::vector<uint32_t> codes(element.size() / 4);
  if (!codes.empty()) std::memcpy(codes.data(), element.data(), codes.size() * 4);
  while (!codes.empty() && codes.back() == 0) codes.pop_back();
  for (const uint32_t code : codes) append_utf8(code, &text);
  return text;
}

}  // namespace

bool npy_holds_strings(std::string_view bytes) {
  const std::string_view descr = read_descr(parts_of(bytes).header);
  return descr.size() > 1 && (descr.substr(0, 2) == "<U" || descr.substr(0, 2) == "|S");
}

onnx::Value npy_decode_strings(std::string_view bytes) {
  const auto [header, data] = parts_of(bytes);
  const std::string_view descr = read_descr(header);
  const bool wide = descr[1] == 'U';
  int64_t letters = 0;
  const auto read = std::from_chars(descr.data() + 2, descr.data() + descr.size(), letters);
  if (read.ec != std::errc() || letters < 0 || letters > 1 << 28) bad(fmt::format("its element type is '{}'", descr));
  const Dims dims = read_dims(header);
  const int64_t each = letters * (wide ? 4 : 1);
  const std::optional<int64_t> count = checked_count(dims, each), elements = checked_count(dims, 1);
  if (!count || !elements || static_cast<uint64_t>(*elements * each) != data.size())
    bad(fmt::format("shape {} of '{}' does not fit {} bytes of data", dims, descr, data.size()));
  if (each == 0 && *elements > 1 << 24) bad(fmt::format("it has {} empty strings", *elements));
  if (value_of(header, "fortran_order").substr(0, 4) == "True" && dims.rank() > 1)
    bad("its strings are in Fortran order; np.ascontiguousarray converts them");
  std::vector<std::string> strings;
  for (int64_t i = 0; i < *elements; ++i)
    strings.push_back(element_text(data.substr(static_cast<size_t>(i * each), static_cast<size_t>(each)), wide));
  return onnx::Value::strings(dims, std::move(strings));
}

std::string npy_encode_strings(const onnx::Value& strings) {
  std::vector<std::vector<uint32_t>> all;
  size_t longest = 1;
  for (const std::string& text : strings.strings()) {
    all.push_back(code_points(text));
    longest = std::max(longest, all.back().size());
  }
  std::string bytes = start_of_file(fmt::format("<U{}", longest), strings.dims());
  for (std::vector<uint32_t>& codes : all) {
    codes.resize(longest, 0);
    bytes.append(reinterpret_cast<const char*>(codes.data()), codes.size() * 4);
  }
  return bytes;
}

Tensor npy_decode(std::string_view bytes, Device device) {
  const auto [header, data] = parts_of(bytes);
  const DType dtype = read_type(header);
  const Dims dims = read_dims(header);
  const std::optional<int64_t> count = checked_count(dims, dtype_size(dtype));
  if (!count || static_cast<uint64_t>(*count * dtype_size(dtype)) != data.size()) {
    bad(fmt::format("shape {} of {} does not fit {} bytes of data", dims, dtype_name(dtype), data.size()));
  }
  if (value_of(header, "fortran_order").substr(0, 4) != "True" || dims.rank() < 2)
    return Tensor::copy_from_host(data.data(), dims, dtype, device);
  Dims reversed;
  std::vector<int64_t> axes;
  for (int32_t axis = dims.rank(); axis-- > 0;) {
    reversed.push_back(dims[axis]);
    axes.push_back(axis);
  }
  return contiguous(permute(Tensor::copy_from_host(data.data(), reversed, dtype, device), axes));
}

std::string npy_encode(const Tensor& tensor) {
  const char* descr = descr_of(tensor.dtype());
  if (descr == nullptr) return npy_encode(cast(tensor, DType::f32));
  std::string bytes = start_of_file(descr, tensor.dims());
  const size_t at = bytes.size();
  bytes.resize(at + static_cast<size_t>(tensor.bytes()));
  tensor.copy_to_host(bytes.data() + at);
  return bytes;
}

}  // namespace tenon::cli
