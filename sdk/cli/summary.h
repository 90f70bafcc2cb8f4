// Summaries of values for reports: all elements of a small tensor, else minimum, maximum and mean.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Returns {"values": [...]}, row-major, for a tensor of at most 8 elements. Every tensor has {"least", "greatest"};
// floats also have {"mean", "nan"}, where "nan" counts NaNs and the other three ignore them. Numbers that JSON cannot
// represent become "inf", "-inf" or "nan". A member is null if it has no elements. Waits for the tensor. Errors: those
// of the ops that computed the tensor.
nlohmann::json summarize(const Tensor& tensor);

// For values of any type. Strings: the first ones as {"values"}. A sequence: {"elements"}, a list of summaries. A map:
// {"keys", "values"}, its summaries. An empty optional has no members.
nlohmann::json summarize(const onnx::Value& value);
// Returns the summary as text. Errors: those of summarize.
std::string summary_text(const onnx::Value& value);

// Converts a summary to text: "values 1, 0, 3", or "least -2.5, greatest 3, mean 0.1, 0 of 12 NaN".
std::string summary_text(const nlohmann::json& summary, int64_t elements);

}  // namespace tenon::cli
