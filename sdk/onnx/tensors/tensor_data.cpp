#include "sdk/onnx/tensors/tensor_data.h"

#include <charconv>
#include <cstring>

#include "core/tensor/unread.h"
#include "primitives/text/format.h"
#include "sdk/onnx/border.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/proto/wire.h"

namespace tenon::onnx {
namespace {

using Proto = onnx_proto::TensorProto;

struct TypeRow {
  int32_t id;
  DType dtype;
  const char* name;
};
// The ids of TensorProto.DataType, also those newer than our onnx.proto.
constexpr TypeRow kTypes[] = {
    {1, DType::f32, "float"},
    {2, DType::u8, "uint8"},
    {3, DType::i8, "int8"},
    {4, DType::u16, "uint16"},
    {5, DType::i16, "int16"},
    {6, DType::i32, "int32"},
    {7, DType::i64, "int64"},
    {8, DType::none, "string"},
    {9, DType::boolean, "bool"},
    {10, DType::f16, "float16"},
    {11, DType::f64, "double"},
    {12, DType::u32, "uint32"},
    {13, DType::u64, "uint64"},
    {14, DType::none, "complex64"},
    {15, DType::none, "complex128"},
    {16, DType::bf16, "bfloat16"},
    {17, DType::f8e4m3fn, "float8e4m3fn"},
    {18, DType::f8e4m3fnuz, "float8e4m3fnuz"},
    {19, DType::f8e5m2, "float8e5m2"},
    {20, DType::f8e5m2fnuz, "float8e5m2fnuz"},
    {21, DType::u4, "uint4"},
    {22, DType::i4, "int4"},
    {23, DType::f4e2m1, "float4e2m1"},
    {24, DType::f8e8m0, "float8e8m0"},
    {25, DType::u2, "uint2"},
    {26, DType::i2, "int2"},
    {27, DType::f6e2m3, "float6e2m3"},
    {28, DType::f6e3m2, "float6e3m2"},
};

Status bad(const Proto& proto, const std::string& what) {
  return Status(Code::invalid_argument, fmt::format("Tensor '{}' {}.", proto.name, what));
}

bool parse_number(std::string_view text, uint64_t* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

Status check_external(const Proto& proto, TensorFiles& files, TensorHeader* header) {
  uint64_t length = static_cast<uint64_t>(header->bytes);
  for (const onnx_proto::StringStringEntryProto& entry : proto.external_data) {
    if (entry.key == "location") {
      header->location = std::string(entry.value);
    } else if (entry.key == "offset" || entry.key == "length") {
      if (!parse_number(entry.value, entry.key == "offset" ? &header->offset : &length)) {
        return bad(proto,
                   fmt::format("has external data whose {}, '{}', is not a number of bytes", entry.key, entry.value));
      }
    } else if (entry.key != "checksum" && entry.key != "basepath") {
      return bad(proto, fmt::format("has external data with the unknown key '{}'", entry.key));
    }
  }
  if (length != static_cast<uint64_t>(header->bytes)) {
    return bad(proto, fmt::format("of shape {} needs {} bytes, but its external data has length {}", header->dims,
                                  header->bytes, length));
  }
  if (files.without_external) return {};
  TENON_ASSIGN_OR_RETURN(const uint64_t size, files.external.size(header->location));
  if (header->offset > size || length > size - header->offset) {
    return bad(proto, fmt::format("needs {} bytes at offset {} of '{}', which has {} bytes", length, header->offset,
                                  header->location, size));
  }
  return {};
}

// The number of values in the typed field for `dtype`.
size_t typed_count(const Proto& proto, DType dtype) {
  switch (dtype) {
    case DType::f32: return proto.float_data.size();
    case DType::f64: return proto.double_data.size();
    case DType::i64: return proto.int64_data.size();
    case DType::u32:
    case DType::u64: return proto.uint64_data.size();
    default: return proto.int32_data.size();
  }
}

template <class T, class Source>
void narrow(const std::vector<Source>& source, void* out) {
  T* to = static_cast<T*>(out);
  for (size_t i = 0; i < source.size(); ++i) to[i] = static_cast<T>(source[i]);
}

// The number of values that the typed field for `dtype` must have for `elements`. A value is a byte with several
// elements of 4 or 2 bits, or one element of 6 bits.
int64_t typed_numbers(DType dtype, int64_t elements) {
  return dtype_info(dtype).bits < 6 ? dtype_bytes(dtype, elements) : elements;
}

// Packs elements of 6 bits, one per value of `source`, without gaps.
void pack_sixes(const std::vector<int32_t>& source, void* out) {
  auto* to = static_cast<uint8_t*>(out);
  uint32_t bits = 0, held = 0;
  for (const int32_t code : source) {
    bits |= (static_cast<uint32_t>(code) & 63u) << held;
    for (held += 6; held >= 8; held -= 8, bits >>= 8) *to++ = static_cast<uint8_t>(bits);
  }
  if (held != 0) *to = static_cast<uint8_t>(bits);
}

void read_typed(const Proto& proto, DType dtype, void* out) {
  if (dtype_info(dtype).bits == 6) return pack_sixes(proto.int32_data, out);
  switch (dtype) {
    case DType::f32: return narrow<float>(proto.float_data, out);
    case DType::f64: return narrow<double>(proto.double_data, out);
    case DType::i64: return narrow<int64_t>(proto.int64_data, out);
    case DType::u32: return narrow<uint32_t>(proto.uint64_data, out);
    case DType::u64: return narrow<uint64_t>(proto.uint64_data, out);
    case DType::i32: return narrow<int32_t>(proto.int32_data, out);
    default: break;
  }
  if (dtype_size(dtype) == 2) return narrow<uint16_t>(proto.int32_data, out);
  narrow<uint8_t>(proto.int32_data, out);
}

// A function that reads the elements of a large tensor from its file, if they are stored there unchanged; else empty.
std::function<Status(void* out)> reader_of(const Proto& proto, const TensorHeader& header, TensorFiles& files) {
  if (header.external && files.without_external)
    return [](void*) { return Status(Code::not_found, "A check does not read external data."); };
  if (header.dtype == DType::boolean || static_cast<uint64_t>(header.bytes) < kLargeWeight) return {};
  if (header.external)
    return files.external.reader(header.location, header.offset, static_cast<uint64_t>(header.bytes));
  return files.model != nullptr && proto.has(Proto::k_raw_data) ? files.model->reader(proto.raw_data) : nullptr;
}

void normalise_bools(void* data, int64_t count) {
  auto* bytes = static_cast<uint8_t*>(data);
  for (int64_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
}

}  // namespace

std::vector<ElementType> element_types() {
  std::vector<ElementType> types;
  for (const TypeRow& row : kTypes) {
    if (row.dtype != DType::none) types.push_back({row.dtype, row.name, row.id});
  }
  return types;
}

DType dtype_of_onnx(int32_t data_type) {
  for (const TypeRow& row : kTypes) {
    if (row.id == data_type) return row.dtype;
  }
  return DType::none;
}

double greatest_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn: return 448.0;
    case DType::f8e4m3fnuz: return 240.0;
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return 57344.0;
    default: return 0.0;
  }
}

int32_t onnx_type_of(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype && dtype != DType::none) return row.id;
  }
  return 0;
}

std::string onnx_type_name(int32_t data_type) {
  for (const TypeRow& row : kTypes) {
    if (row.id == data_type) return row.name;
  }
  return fmt::format("type {}", data_type);
}

Result<TensorHeader> check_tensor(const Proto& proto, TensorFiles& files) {
  TensorHeader header;
  header.dtype = dtype_of_onnx(proto.data_type);
  if (header.dtype == DType::none) {
    return Status(Code::unsupported, fmt::format("Tensor '{}' holds {}, an element type that Tenon does not have.",
                                                 proto.name, onnx_type_name(proto.data_type)));
  }
  if (proto.has(Proto::k_segment))
    return Status(Code::unsupported, fmt::format("Tensor '{}' is stored in segments.", proto.name));
  if (proto.dims.size() > EP_MAX_RANK) {
    return bad(proto, fmt::format("has rank {}; at most {} is possible", proto.dims.size(), EP_MAX_RANK));
  }
  header.dims = Dims(proto.dims);
  const int64_t size = dtype_size(header.dtype);  // 0: packed. With 8 bytes per element, even a count of bits fits
  const std::optional<int64_t> count = checked_count(header.dims, size != 0 ? size : 8);
  if (!count) return bad(proto, fmt::format("has the impossible shape {}", header.dims));
  header.elements = *count;
  header.bytes = dtype_bytes(header.dtype, *count);
  header.external = proto.data_location == Proto::DataLocation_EXTERNAL;
  if (header.external) {
    TENON_RETURN_IF_ERROR(check_external(proto, files, &header));
    return header;
  }
  const bool raw = proto.has(Proto::k_raw_data);
  const uint64_t have = raw ? proto.raw_data.size() : typed_count(proto, header.dtype);
  const int64_t numbers = typed_numbers(header.dtype, header.elements);
  const uint64_t want = static_cast<uint64_t>(raw ? header.bytes : numbers);
  if (have != want) {
    return bad(proto, fmt::format("of shape {} and type {} needs {}{}, but the file has {}", header.dims,
                                  dtype_name(header.dtype), want,
                                  raw                          ? " bytes"
                                  : numbers == header.elements ? " elements"
                                                               : " numbers",
                                  have));
  }
  return header;
}

Status read_elements(const Proto& proto, const TensorHeader& header, TensorFiles& files, void* out) {
  if (header.bytes == 0) return {};
  if (header.external) {
    TENON_RETURN_IF_ERROR(
        files.external.read(header.location, header.offset, static_cast<uint64_t>(header.bytes), out));
  } else if (proto.has(Proto::k_raw_data)) {
    if (files.model != nullptr) {
      TENON_RETURN_IF_ERROR(files.model->read(proto.raw_data, out));
    } else {
      std::memcpy(out, proto.raw_data.data(), proto.raw_data.size());
    }
  } else {
    read_typed(proto, header.dtype, out);
  }
  if (header.dtype == DType::boolean) normalise_bools(out, header.elements);
  return {};
}

Result<Tensor> read_tensor(const Proto& proto, TensorFiles& files, Device device) {
  TENON_ASSIGN_OR_RETURN(const TensorHeader header, check_tensor(proto, files));
  if (auto reader = reader_of(proto, header, files)) {
    return unread_tensor(header.dims, header.dtype, device, std::move(reader));
  }
  Tensor tensor = Tensor::empty(header.dims, header.dtype, device);
  if (header.elements == 0) return tensor;
  if (void* direct = tensor.data()) {
    TENON_RETURN_IF_ERROR(read_elements(proto, header, files, direct));
    return tensor;
  }
  std::string staging(static_cast<size_t>(header.bytes), '\0');
  TENON_RETURN_IF_ERROR(read_elements(proto, header, files, staging.data()));
  tensor.copy_from(staging.data());
  return tensor;
}

namespace {

Tensor decoded(std::string_view bytes, Device device, std::string* name) {
  Proto proto;
  if (const std::string error = onnx_proto::decode(bytes, &proto); !error.empty()) {
    throw Error(Code::invalid_argument, fmt::format("This is not a TensorProto. {}", error));
  }
  TensorFiles none{ExternalFiles(std::string()), nullptr};
  if (name != nullptr) *name = std::string(proto.name);
  return value_or_throw(read_tensor(proto, none, device ? device : Device::current()));
}

std::string encoded(const Tensor& tensor, std::string_view name) {
  Proto proto;
  proto.name = name;
  proto.data_type = onnx_type_of(tensor.dtype());
  if (proto.data_type == 0) {
    throw Error(Code::unsupported, fmt::format("ONNX has no element type for {}.", dtype_name(tensor.dtype())));
  }
  proto.dims.assign(tensor.dims().begin(), tensor.dims().end());
  std::string data(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(data.data());
  proto.raw_data = data;
  proto.present = 1u << Proto::k_name | 1u << Proto::k_data_type | 1u << Proto::k_raw_data;
  return onnx_proto::encode(proto);
}

}  // namespace

Tensor tensor_from_bytes(std::string_view bytes, Device device, std::string* name) {
  return at_border([&] { return decoded(bytes, device, name); });
}

std::string tensor_to_bytes(const Tensor& tensor, std::string_view name) {
  return at_border([&] { return encoded(tensor, name); });
}

std::string value_to_bytes(const Value& value, std::string_view name) {
  if (value.kind() != Value::Kind::strings) return tensor_to_bytes(value.tensor(), name);
  return at_border([&] {
    Proto proto;
    proto.name = name;
    proto.data_type = kOnnxString;
    proto.dims.assign(value.dims().begin(), value.dims().end());
    proto.string_data.assign(value.strings().begin(), value.strings().end());
    proto.present = 1u << Proto::k_name | 1u << Proto::k_data_type;
    return onnx_proto::encode(proto);
  });
}

}  // namespace tenon::onnx
