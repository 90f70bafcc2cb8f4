#include "sdk/cli/npy.h"

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

// The text after 'key': in the header, which is a Python dict literal.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) bad(fmt::format("its header has no '{}'", key));
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) bad("its header is cut off");
  std::string_view rest = header.substr(colon + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

DType read_type(std::string_view header) {
  std::string_view value = value_of(header, "descr");
  const size_t end = value.size() > 1 && value[0] == '\'' ? value.find('\'', 1) : std::string_view::npos;
  if (end == std::string_view::npos) bad("its elements are records, which a tensor cannot hold");
  value = value.substr(1, end - 1);
  for (const TypeRow& row : kTypes) {
    const std::string_view known = row.descr;
    const bool any_order = known[0] == '|' && value.size() == 3;
    if (value == known || (any_order && value.substr(1) == known.substr(1))) return row.dtype;
  }
  bad(fmt::format("its element type '{}' is not one of bool, i1 to i8, u1 to u8, f2, f4, f8 in little-endian order",
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
      bad(fmt::format("its shape holds '{}', which is no length", value.substr(0, 20)));
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

}  // namespace

Tensor npy_decode(std::string_view bytes, Device device) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) bad("it does not begin with \\x93NUMPY");
  const auto major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3) bad(fmt::format("its version is {}; 1 to 3 are known", major));
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) bad("its header is cut off");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{static_cast<uint8_t>(bytes[8 + i])} << (8 * i);
  if (length > bytes.size() - 8 - length_bytes) bad("its header is cut off");
  const std::string_view header = bytes.substr(8 + length_bytes, length);
  const std::string_view data = bytes.substr(8 + length_bytes + length);
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
  std::string shape;
  for (int64_t dim : tensor.dims()) shape += fmt::format("{}, ", dim);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  const size_t at = bytes.size();
  bytes.resize(at + static_cast<size_t>(tensor.bytes()));
  tensor.copy_to_host(bytes.data() + at);
  return bytes;
}

}  // namespace tenon::cli
