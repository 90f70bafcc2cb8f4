// How much memory a few bytes of a file may stand for.
#pragma once

#include <cstdint>

#include "onnx_messages.h"

namespace tenon::onnx {

// The bytes of a sparse tensor with its zeros; 0 for a shape that the reader of tensors refuses.
uint64_t unfolded(const onnx_proto::SparseTensorProto& tensor);

// The bytes that a copy of the attribute takes, about.
uint64_t size_of(const onnx_proto::AttributeProto& attribute);

// Bytes of sparse tensors with their zeros, and of what expanded functions copy.
class Budget {
 public:
  // Errors: invalid_argument, "The model is malformed: ...", once a model has spent more than 1 GiB.
  void spend(uint64_t bytes);

 private:
  uint64_t left_ = uint64_t{1} << 30;
};

}  // namespace tenon::onnx
