// Makes the inputs of a model from the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// The inputs of `model`, on its device. `given` has NAME=FILE.npy, NAME=FILE.pb, NAME=FILE.txt (strings), NAME=random
// or NAME=random:1x3x224x224, once per input; inputs with an initialiser may be left out. `dims` has NAME=NUMBER for
// the named dynamic dims of random inputs. Errors: a sentence about the argument.
onnx::Inputs make_inputs(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed);
// The same of a model that may take strings, sequences or optionals.
onnx::Values make_values(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed);

// `given`, and NAME=random for each input that is missing there.
std::vector<std::string> random_where_missing(const onnx::Model& model, std::vector<std::string> given);

}  // namespace tenon::cli
