// Compares a result with the expected tensor of a test case.
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/cli/onnx_test/onnx_case.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Empty if `actual` equals `expected`: dtype and shape are the same, integers and bools are equal, floats are within
// atol + rtol * |expected| (NaN equals NaN, infinities are equal), bf16 is within two units in the last place.
// Otherwise a sentence about the first difference.
std::string difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// The same for any values. Strings are equal; sequences have equal elements.
std::string difference(const onnx::Value& actual, const onnx::Value& expected, const Tolerance& tolerance);

}  // namespace tenon::cli
