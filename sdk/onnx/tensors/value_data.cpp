// Strings, sparse tensors, sequences and optionals of ONNX's messages, as values.
#include <cstring>

#include "primitives/text/format.h"
#include "sdk/onnx/border.h"
#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

using Proto = onnx_proto::TensorProto;

Status bad(std::string_view name, const std::string& what) {
  return Status(Code::invalid_argument, fmt::format("Tensor '{}' {}.", name, what));
}

Result<Value> read_strings(const Proto& proto) {
  if (proto.dims.size() > EP_MAX_RANK)
    return bad(proto.name, fmt::format("has rank {}; at most {} is possible", proto.dims.size(), EP_MAX_RANK));
  const Dims dims(proto.dims);
  const std::optional<int64_t> count = checked_count(dims, 1);
  if (!count) return bad(proto.name, fmt::format("has the impossible shape {}", dims));
  if (proto.data_location == Proto::DataLocation_EXTERNAL)
    return bad(proto.name, "holds strings in an external file; strings are stored in the model");
  if (static_cast<uint64_t>(*count) != proto.string_data.size()) {
    return bad(proto.name, fmt::format("of shape {} and type string needs {} elements, but the file has {}", dims,
                                       *count, proto.string_data.size()));
  }
  return Value::strings(dims, {proto.string_data.begin(), proto.string_data.end()});
}

// The positions of the elements in row-major order, checked to rise and to be below `count`.
Result<std::vector<int64_t>> read_places(const onnx_proto::SparseTensorProto& proto, const Dims& dims, int64_t count,
                                         int64_t given, TensorFiles& files) {
  const std::string_view name = proto.values->name;
  if (!proto.indices) return bad(name, "is sparse and has no indices");
  TENON_ASSIGN_OR_RETURN(const TensorHeader header, check_tensor(*proto.indices, files));
  const bool flat = header.dims == Dims{given};
  if (header.dtype != DType::i64 || (!flat && header.dims != Dims{given, static_cast<int64_t>(dims.rank())})) {
    return bad(name, fmt::format("is sparse with {} values of rank {}, but its indices are {}{}", given, dims.rank(),
                                 dtype_name(header.dtype), header.dims));
  }
  std::vector<int64_t> read(static_cast<size_t>(header.elements)), places(static_cast<size_t>(given));
  TENON_RETURN_IF_ERROR(read_elements(*proto.indices, header, files, read.data()));
  for (size_t i = 0; i < places.size(); ++i) {
    for (int32_t axis = 0; axis < (flat ? 1 : dims.rank()); ++axis) {
      const int64_t length = flat ? count : dims[axis];
      const int64_t index = flat ? read[i] : read[i * static_cast<size_t>(dims.rank()) + static_cast<size_t>(axis)];
      if (index < 0 || index >= length)
        return bad(name, fmt::format("of shape {} is sparse and has the index {}", dims, index));
      places[i] = places[i] * (flat ? 1 : length) + index;
    }
    if (i != 0 && places[i] <= places[i - 1]) return bad(name, "is sparse, and its indices do not rise");
  }
  return places;
}

Result<Value> read_sequence(const onnx_proto::SequenceProto& proto, TensorFiles& files, Device device);

Result<Value> read_optional(const onnx_proto::OptionalProto& proto, TensorFiles& files, Device device) {
  if (proto.tensor_value) return read_value(*proto.tensor_value, files, device);
  if (proto.sparse_tensor_value) return read_sparse_tensor(*proto.sparse_tensor_value, files, device);
  if (proto.sequence_value) return read_sequence(*proto.sequence_value, files, device);
  if (proto.optional_value) return read_optional(*proto.optional_value, files, device);
  return Value::nothing();
}

Result<Value> read_sequence(const onnx_proto::SequenceProto& proto, TensorFiles& files, Device device) {
  std::vector<Value> elements;
  const auto read_all = [&](const auto& list, auto read) -> Status {
    for (const auto& each : list) {
      TENON_ASSIGN_OR_RETURN(Value element, read(each, files, device));
      elements.push_back(std::move(element));
    }
    return {};
  };
  TENON_RETURN_IF_ERROR(read_all(proto.tensor_values, read_value));
  TENON_RETURN_IF_ERROR(read_all(proto.sparse_tensor_values, read_sparse_tensor));
  TENON_RETURN_IF_ERROR(read_all(proto.sequence_values, read_sequence));
  TENON_RETURN_IF_ERROR(read_all(proto.optional_values, read_optional));
  return Value::sequence(std::move(elements));
}

template <class Message>
Value decoded(std::string_view bytes, Device device, const char* name,
              Result<Value> (*read)(const Message& proto, TensorFiles& files, Device device)) {
  Message proto;
  if (const std::string error = onnx_proto::decode(bytes, &proto); !error.empty())
    throw Error(Code::invalid_argument, fmt::format("This is not a {}. {}", name, error));
  TensorFiles none{ExternalFiles(std::string()), nullptr};
  return value_or_throw(read(proto, none, device ? device : Device::current()));
}

}  // namespace

bool is_text(const Proto& proto) { return proto.data_type == Proto::DataType_STRING; }

Result<Value> read_value(const Proto& proto, TensorFiles& files, Device device) {
  if (is_text(proto)) return read_strings(proto);
  TENON_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(proto, files, device));
  return Value(std::move(tensor));
}

Result<Value> read_sparse_tensor(const onnx_proto::SparseTensorProto& proto, TensorFiles& files, Device device) {
  if (!proto.values) return bad("", "is sparse and has no values");
  const std::string_view name = proto.values->name;
  TENON_ASSIGN_OR_RETURN(const TensorHeader header, check_tensor(*proto.values, files));
  const int64_t size = dtype_size(header.dtype);
  if (size == 0)
    return Status(Code::unsupported, fmt::format("Tensor '{}' is sparse and holds {}, elements smaller than a byte.",
                                                 name, dtype_name(header.dtype)));
  if (proto.dims.size() > EP_MAX_RANK)
    return bad(name, fmt::format("has rank {}; at most {} is possible", proto.dims.size(), EP_MAX_RANK));
  const Dims dims(proto.dims);
  const std::optional<int64_t> count = checked_count(dims, size);
  if (!count) return bad(name, fmt::format("has the impossible shape {}", dims));
  if (*count > kLargestSparse / size) {
    return Status(Code::unsupported, fmt::format("Tensor '{}' of shape {} is sparse; in dense form it would have {} "
                                                 "bytes, and at most {} are possible.",
                                                 name, dims, *count * size, kLargestSparse));
  }
  if (header.dims.rank() != 1)
    return bad(name, fmt::format("is sparse, and its values have shape {}, not one axis", header.dims));
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> places, read_places(proto, dims, *count, header.elements, files));
  std::string values(static_cast<size_t>(header.bytes), '\0'), whole(static_cast<size_t>(*count * size), '\0');
  TENON_RETURN_IF_ERROR(read_elements(*proto.values, header, files, values.data()));
  const auto bytes = static_cast<size_t>(size);
  for (size_t i = 0; i < places.size(); ++i)
    std::memcpy(whole.data() + static_cast<size_t>(places[i]) * bytes, values.data() + i * bytes, bytes);
  return Value(Tensor::copy_from_host(whole.data(), dims, header.dtype, device));
}

Value value_from_bytes(std::string_view bytes, const ValueInfo& info, Device device) {
  return at_border([&] {
    if (info.optional) return decoded<onnx_proto::OptionalProto>(bytes, device, "OptionalProto", read_optional);
    if (info.kind == Value::Kind::map) {
      throw Error(Code::unsupported, fmt::format("'{}' is a map; maps cannot be read from a file.", info.name));
    }
    if (info.kind == Value::Kind::sequence)
      return decoded<onnx_proto::SequenceProto>(bytes, device, "SequenceProto", read_sequence);
    return decoded<Proto>(bytes, device, "TensorProto", read_value);
  });
}

}  // namespace tenon::onnx
