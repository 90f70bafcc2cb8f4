// Summaries of values for reports: all elements of a small tensor, else minimum, maximum and mean.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// A tensor of at most 8 elements gives {"values": [...]}, row-major. Every tensor gives {"least", "greatest"}; floats
// also give {"mean", "nan"}, where "nan" counts NaNs and the other three ignore them. Numbers that JSON lacks become
// "inf", "-inf" or "nan". A member is null if no element counts. Waits for the tensor. Errors: those of the ops that
// computed the tensor.
nlohmann::json summarize(const Tensor& tensor);

// Of another value than a tensor of numbers: its first strings as {"values"}; of a sequence {"elements"}, of a map
// {"keys", "values"}, each a list of summaries or a summary; nothing of an optional that holds nothing.
nlohmann::json summarize(const onnx::Value& value);
// The same as text. Errors: those of summarize.
std::string summary_text(const onnx::Value& value);

// A summary as text: "values 1, 0, 3", or "least -2.5, greatest 3, mean 0.1, 0 of 12 NaN".
std::string summary_text(const nlohmann::json& summary, int64_t elements);

}  // namespace tenon::cli
