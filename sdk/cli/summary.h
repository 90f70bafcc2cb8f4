// What a tensor holds, for reports: its values where there are few, else the least, the greatest and the mean.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tensor/tensor.h"

namespace tenon::cli {

// {"values": [...]} of at most 8 elements, row-major; {"least", "greatest"} of any, and of floats {"mean", "nan"}, the
// number of NaNs, which the other three leave out. What JSON has no number for is "inf", "-inf" or "nan". Null where no
// element counts. Waits for the tensor. Errors: those of the ops that made it.
nlohmann::json summarize(const Tensor& tensor);

// The same as a text: "values 1, 0, 3", or "least -2.5, greatest 3, mean 0.1, 0 of 12 NaN".
std::string summary_text(const nlohmann::json& summary, int64_t elements);

}  // namespace tenon::cli
