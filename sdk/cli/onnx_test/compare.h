// Compares a result with the expected tensor of a test case.
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/cli/onnx_test/onnx_case.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Empty if `actual` equals `expected`: dtype and shape are the same, integers and bools are equal, floats are within
// atol + rtol * |expected| (NaN equals NaN, infinities are equal) or, f16, within two units in the last place; bf16 is
// within two such units. f32 and f64 may also differ by one rounding of the greatest expected element, since what
// should be 0 is then the rest of a sum of such elements. Otherwise a sentence about the first difference.
std::string difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// Compares draws of two generators of random numbers. Where `expected` has zeros, some elements were dropped: those
// that neither dropped are equal, and the shares of zeros are within 3 standard errors of each other. Else the means
// are, and the standard deviations.
std::string difference_of_draws(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// The same for any values. Strings are equal; sequences have equal elements.
std::string difference(const onnx::Value& actual, const onnx::Value& expected, const Tolerance& tolerance);

}  // namespace tenon::cli
