// Summaries of tensors for reports: all values of a small tensor, else minimum, maximum and mean.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tensor/tensor.h"

namespace tenon::cli {

// A tensor of at most 8 elements gives {"values": [...]}, row-major. Every tensor gives {"least", "greatest"}; floats
// also give {"mean", "nan"}, where "nan" counts NaNs and the other three ignore them. Numbers that JSON lacks become
// "inf", "-inf" or "nan". A member is null if no element counts. Waits for the tensor. Errors: those of the ops that
// computed the tensor.
nlohmann::json summarize(const Tensor& tensor);

// A summary as text: "values 1, 0, 3", or "least -2.5, greatest 3, mean 0.1, 0 of 12 NaN".
std::string summary_text(const nlohmann::json& summary, int64_t elements);

}  // namespace tenon::cli
