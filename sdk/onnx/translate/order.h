// Scans, sorts, and operators that find or replace elements, for the rows in index.cpp.
#pragma once

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

TensorList translate_compress(NodeContext& n);
TensorList translate_cum_prod(NodeContext& n);
TensorList translate_cum_sum(NodeContext& n);
TensorList translate_gather_nd(NodeContext& n);
TensorList translate_non_zero(NodeContext& n);
TensorList translate_one_hot(NodeContext& n);
TensorList translate_scatter_elements(NodeContext& n);
TensorList translate_scatter_nd(NodeContext& n);
TensorList translate_top_k(NodeContext& n);
TensorList translate_unique(NodeContext& n);

}  // namespace tenon::onnx
