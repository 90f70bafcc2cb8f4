// DynamicOp: an op for the dynamic call, with its signatures as data. The tables are generated from ops.yaml.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon {

class ArgumentList;  // core/ops/argument_list.h

// The kinds of value a parameter accepts.
enum : uint16_t {
  kAcceptsNone = 1,
  kAcceptsBool = 2,
  kAcceptsInt = 4,
  kAcceptsFloat = 8,
  kAcceptsTensor = 16,
  kAcceptsInts = 32,
  kAcceptsTensors = 64,
  kAcceptsEmpty = 128,  // the empty list, which counts as a list of ints and of tensors
  kAcceptsDtype = 256,
  kAcceptsDevice = 512,
  kAcceptsString = 1024,
  kAcceptsFloats = 2048,
  kAcceptsGenerator = 4096,
};

struct Parameter {
  std::string_view name;
  std::string_view type;  // the type in messages: "Tensor"
  uint16_t accepts;
  bool keyword_only;
  bool required;
};

struct Signature {
  std::string_view text;  // "pow(Tensor input, Tensor exponent)"
  std::span<const Parameter> parameters;
  bool several;  // its result is a tuple or a list, even of one tensor
  TensorList (*invoke)(const ArgumentList& arguments);
};

struct DynamicOp {
  std::string_view name;
  std::string_view doc;  // what the op computes, its arguments, result and an example; signatures are not part of it
  std::span<const Signature> signatures;
};

}  // namespace tenon
