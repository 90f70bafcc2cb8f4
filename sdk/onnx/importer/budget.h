// Limits the memory that a small file may demand.
#pragma once

#include <cstdint>

#include "onnx_messages.h"

namespace tenon::onnx {

// The bytes of a sparse tensor in dense form; 0 for a shape that the reader of tensors refuses.
uint64_t unfolded(const onnx_proto::SparseTensorProto& tensor);

// The approximate bytes of a copy of the attribute.
uint64_t size_of(const onnx_proto::AttributeProto& attribute);

// Counts the bytes of sparse tensors in dense form and of copies that expanded functions make.
class Budget {
 public:
  // Errors: invalid_argument, "The model is malformed: ...", if the model has spent more than 1 GiB.
  void spend(uint64_t bytes);

 private:
  uint64_t left_ = uint64_t{1} << 30;
};

}  // namespace tenon::onnx
