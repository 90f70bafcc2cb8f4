// Elements of images at positions between their elements.
#pragma once

#include <vector>

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

enum class Taps : uint8_t { nearest, linear, cubic };
enum class Border : uint8_t { zeros, edge, reflect };

// x [n, c, d1..dk] sampled at positions[axis] [n, p], in units of elements: [n, c, p]. Beyond the border are zeros, the
// nearest element, or the mirror image, reflected at the centre of the last element if `corners`, else at its edge.
// Cubic taps are those of Keys with -0.75.
Tensor sampled(const Tensor& x, const std::vector<Tensor>& positions, Taps taps, Border border, bool corners);

}  // namespace tenon::onnx
