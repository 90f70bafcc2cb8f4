// Converts between ONNX's tensors and Tenon's, with checks of the untrusted TensorProto.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "onnx_messages.h"
#include "sdk/onnx/file/file.h"
#include "sdk/onnx/file/model_file.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

// The dtype of a TensorProto.DataType; DType::none if Tenon has no such type.
DType dtype_of_onnx(int32_t data_type);
// The largest finite number of an 8-bit float type, at which casts saturate by default; 0 for other types.
double greatest_of(DType dtype);
// The TensorProto.DataType of a dtype; 0 if ONNX has none.
int32_t onnx_type_of(DType dtype);
// TensorProto.DataType of strings. Tenon has no such dtype.
constexpr int32_t kOnnxString = 8;
// "float", "string", "type 99"
std::string onnx_type_name(int32_t data_type);

// Files with elements that are not in the messages.
struct TensorFiles {
  ExternalFiles external;
  const ModelFile* model = nullptr;  // the file of the messages; null: the messages are complete and in memory
  bool without_external = false;     // external data are not checked, and reading them fails
};

// The checked header of a TensorProto: a supported dtype, at most 8 non-negative dims without overflow, and data for
// every element (for external data: a range inside the file).
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

// True if the tensor holds strings; these go to a Value, not a Tensor.
bool is_text(const onnx_proto::TensorProto& proto);
// A tensor of numbers on `device`, or a tensor of strings.
Result<Value> read_value(const onnx_proto::TensorProto& proto, TensorFiles& files, Device device);
// A sparse tensor in dense form. Errors: as check_tensor; positions outside the shape, out of order or repeated; a
// shape of more than kLargestSparse bytes.
constexpr int64_t kLargestSparse = int64_t{1} << 30;
Result<Value> read_sparse_tensor(const onnx_proto::SparseTensorProto& proto, TensorFiles& files, Device device);

}  // namespace tenon::onnx
