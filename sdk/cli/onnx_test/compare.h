// Compares a result with the expected tensor of a test case.
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "sdk/cli/onnx_test/onnx_case.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// Returns an empty text if `actual` matches `expected`, else a sentence about the first difference. They match if dtype
// and shape are the same, integers and bools are equal, and floats are within atol + rtol * |expected| (NaN equals NaN,
// infinities are equal). f16 also matches within two units in the last place; bf16 is compared only by such units. f32
// and f64 may also differ by one rounding of the greatest expected element, since a 0 may be the sum of such elements.
std::string difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// Compares the results of two generators of random numbers. If `expected` contains zeros, they are results of dropout:
// elements that neither dropped must be equal, and the shares of zeros must be within 3 standard errors of each other.
// Otherwise the means and the standard deviations must be within 3 standard errors.
std::string difference_of_draws(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// Compares values of any type. Strings must be equal; elements of sequences must match.
std::string difference(const onnx::Value& actual, const onnx::Value& expected, const Tolerance& tolerance);

}  // namespace tenon::cli
