// Makes the inputs of a model from the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Makes the inputs of `model`, on its device. `given` has one entry per input: NAME=FILE.npy, NAME=FILE.pb,
// NAME=FILE.txt (strings), NAME=random or NAME=random:1x3x224x224. Inputs with an initialiser may be omitted. `dims`
// has NAME=NUMBER for the named dynamic dims of random inputs. Errors: a sentence about the wrong argument.
onnx::Inputs make_inputs(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed);
// Like make_inputs, for models whose inputs may be strings, sequences or optionals.
onnx::Values make_values(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed);

// Returns `given` with NAME=random added for each missing input.
std::vector<std::string> random_where_missing(const onnx::Model& model, std::vector<std::string> given);

}  // namespace tenon::cli
