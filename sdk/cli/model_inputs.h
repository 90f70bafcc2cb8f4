// The inputs of a model as the command line gives them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// `given`: NAME=FILE.npy, NAME=FILE.pb, NAME=random or NAME=random:1x3x224x224, once per input of `model`; `dims`:
// NAME=NUMBER for named dynamic dims of random ones. On the model's device. Errors: a sentence about the argument.
onnx::Inputs make_inputs(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed);

}  // namespace tenon::cli
