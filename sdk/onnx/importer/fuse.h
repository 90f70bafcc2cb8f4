// Fusing: patterns of nodes that exporters write and that one op computes. Works on the nodes of a parsed model, before
// anything is recorded, so both ways of running see the same nodes.
//
//   layer norm in nine nodes       -> LayerNormalization
//   gelu in five nodes             -> Gelu
//   Conv, BatchNormalization       -> Conv with other weights
//   Conv | MatMul | Gemm, then Add of a bias or of another value, then an activation -> one launch where the device can
//
// A pattern is taken only if its inner values have no other reader and are no outputs. What depends on shapes (does the
// value added have the shape of the result?) is settled by the fused row when it is applied.
#pragma once

#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// Rewrites the nodes of `parsed`. Takes nothing it cannot prove equal up to rounding.
void fuse(ParsedModel* parsed);

}  // namespace tenon::onnx
