// Fusing: replaces patterns of nodes that exporters write by one op that computes the same. It works on the nodes of a
// parsed model before they are recorded, so eager and recorded runs see the same nodes.
//
//   layer norm in nine nodes       -> LayerNormalization
//   gelu in five nodes             -> Gelu
//   Conv, BatchNormalization       -> Conv with other weights
//   Conv | MatMul | Gemm, then Add of a bias or of another value, then an activation -> one launch where the device can
//
// A pattern qualifies only if no other node reads its inner values and none of them is an output. Conditions on shapes
// (does the added value have the shape of the result?) are checked later, when the fused operator is applied.
#pragma once

#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// Rewrites the nodes of `parsed`. Every rewrite is equal to the original up to rounding.
void fuse(ParsedModel* parsed);

}  // namespace tenon::onnx
