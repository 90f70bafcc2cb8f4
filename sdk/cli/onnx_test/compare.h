// Comparing a result with what a test case expects.
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/cli/onnx_test/onnx_case.h"

namespace tenon::cli {

// Empty if `actual` is as `expected`: same dtype and shape; integers and bools equal, floats within atol + rtol *
// |expected| (NaN with NaN, infinities equal), bf16 within two units in the last place. Else a sentence with the first
// difference.
std::string difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

}  // namespace tenon::cli
