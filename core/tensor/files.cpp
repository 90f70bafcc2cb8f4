#include "core/tensor/files.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/tensor/file_access.h"
#include "core/tensor/file_header.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using files::byte_count;
using files::checked_dims;
using files::refuse;
using files::Row;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, fmt::format("There is no file {} that can be read.", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

// --- npy ---

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyHeader {
  DType dtype = DType::none;
  bool swapped = false;  // true if the file has the other byte order
  bool by_column = false;
  std::vector<int64_t> dims;
};

void read_descr(const std::string& text, NpyHeader* header) {
  const std::string_view descr = text;
  if (descr.size() < 2) refuse(fmt::format("npy: descr is '{}', which is not a dtype.", text));
  header->swapped = descr[0] == '>';
  for (const Row& row : files::rows()) {
    if (!row.npy.empty() && row.npy == descr.substr(1) && std::string_view("<>|=").find(descr[0]) != descr.npos) {
      header->dtype = row.dtype;
    }
  }
  if (header->dtype == DType::none) refuse(fmt::format("npy: Tenon has no dtype for elements of '{}'.", text));
}

NpyHeader read_npy_header(std::string_view text) {
  files::HeaderReader reader("npy", text);
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
      refuse(fmt::format("npy: the header has the unknown key '{}'.", key));
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (header.dtype == DType::none || !shaped || !reader.ended()) refuse("npy: the header lacks descr or shape.");
  return header;
}

// `data` in row-major order; it was stored with the first axis innermost.
std::string by_row(const std::string& data, const Dims& dims, size_t size) {
  std::string rows(data.size(), '\0');
  Dims at = Dims::filled(dims.rank(), 0);
  for (size_t to = 0; to < data.size(); to += size) {
    int64_t from = 0;
    for (int32_t axis = dims.rank() - 1; axis >= 0; --axis) from = from * dims[axis] + at[axis];
    std::memcpy(&rows[to], &data[static_cast<size_t>(from) * size], size);
    for (int32_t axis = dims.rank() - 1; axis >= 0 && ++at[axis] == dims[axis]; --axis) at[axis] = 0;
  }
  return rows;
}

}  // namespace

std::string npy_to_bytes(const Tensor& tensor) {
  const Row* row = files::row_of(tensor.dtype());
  if (row == nullptr || row->npy.empty()) {
    throw Error(Subject{"npy"}, Code::unsupported,
                fmt::format("NumPy has no dtype for {}.", dtype_name(tensor.dtype())));
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
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) refuse("npy: the file does not begin like a .npy file.");
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
    refuse(fmt::format("npy: the file has {} bytes of elements, but its shape needs another number.", data.size()));
  }
  const auto size = static_cast<size_t>(dtype_size(header.dtype));
  for (size_t i = 0; header.swapped && i < data.size(); i += size) std::reverse(&data[i], &data[i] + size);
  const Dims dims = checked_dims("npy", header.dims);
  if (!header.by_column) return Tensor::copy_from_host(data.data(), dims, header.dtype, device);
  const std::string rows = by_row(data, dims, size);
  return Tensor::copy_from_host(rows.data(), dims, header.dtype, device);
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const std::string bytes = npy_to_bytes(tensor);
  files::FileWriter file(path);
  file.write(bytes);
  file.finish();
}
Tensor load_npy(const std::string& path, Device device) { return npy_from_bytes(read_file(path), device); }
NamedTensors load_safetensors(const std::string& path, Device device, Metadata* metadata) {
  return safetensors_from_bytes(read_file(path), device, metadata);
}

}  // namespace tenon
