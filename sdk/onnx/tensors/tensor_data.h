// Converts between ONNX's tensors and Tenon's: element types, and the checked way from a TensorProto to elements.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "onnx_messages.h"
#include "sdk/onnx/file/file.h"
#include "sdk/onnx/file/model_file.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

// The dtype of a TensorProto.DataType; none if Tenon has no such type.
DType dtype_of_onnx(int32_t data_type);
// The greatest number of a float of 8 bits that saturates where a node does not say otherwise; else 0.
double greatest_of(DType dtype);
// The TensorProto.DataType of a dtype; 0 if ONNX has none.
int32_t onnx_type_of(DType dtype);
// TensorProto.DataType of strings, which are no dtype.
constexpr int32_t kOnnxString = 8;
// "float", "string", "type 99"
std::string onnx_type_name(int32_t data_type);

// Where the elements of tensors come from beside the messages themselves.
struct TensorFiles {
  ExternalFiles external;
  const ModelFile* model = nullptr;  // the file that the messages are from; null: they are in memory, and whole
  bool without_external = false;     // external data are not looked at, and reading them is an error
};

// The checked header of a TensorProto: a supported dtype, at most 8 dims, none negative, no overflow, and as much data
// as elements (for external data: a range inside the file).
struct TensorHeader {
  DType dtype = DType::none;
  Dims dims;
  int64_t elements = 0;
  int64_t bytes = 0;
  bool external = false;
  std::string location;
  uint64_t offset = 0;
};
Result<TensorHeader> check_tensor(const onnx_proto::TensorProto& proto, TensorFiles& files);

// Writes the elements of a checked tensor, row-major, to `out`, which has header.bytes bytes.
Status read_elements(const onnx_proto::TensorProto& proto, const TensorHeader& header, TensorFiles& files, void* out);

// Reads header and elements into a tensor on `device`.
Result<Tensor> read_tensor(const onnx_proto::TensorProto& proto, TensorFiles& files, Device device);

// Whether the tensor holds strings, which a Value holds and a Tensor does not.
bool is_text(const onnx_proto::TensorProto& proto);
// A tensor of numbers on `device`, or a tensor of strings.
Result<Value> read_value(const onnx_proto::TensorProto& proto, TensorFiles& files, Device device);
// A sparse tensor with its zeros. Errors: as check_tensor; positions that are outside of the shape, not in order or
// more than one for a place; a shape of more than kLargestSparse bytes.
constexpr int64_t kLargestSparse = int64_t{1} << 30;
Result<Value> read_sparse_tensor(const onnx_proto::SparseTensorProto& proto, TensorFiles& files, Device device);

}  // namespace tenon::onnx
