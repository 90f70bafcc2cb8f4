// Attention as operators of several domains write it.
#pragma once

#include <string_view>

#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

// Everything that decides which keys a query reads, and with which weight.
struct Scores {
  Tensor query, key, value;  // [b, h, q, w], [b, g, k, w], [b, g, k, v]
  Tensor bias;               // broadcasts to [b, h, q, k]; bool or a float; may be undefined
  Tensor lengths;            // [b]; may be undefined
  int64_t before = -1, after = -1;
  bool align_end = false;
  double scale = 1, softcap = 0;
};
// [b, h, q, v] in the dtype of the queries.
Tensor attended(const Scores& s);

// Gives each head of the queries a score, in `sink` [h], that takes its part of the weights and adds nothing.
void add_sink(NodeContext& n, const Tensor& sink, Scores* s);

// 1 / sqrt of the last dim of `query`.
double usual_scale(const Tensor& query);
// [b, s, heads * w] as [b, heads, s, w], and back.
Tensor with_heads(NodeContext& n, const Tensor& x, int64_t heads);
Tensor without_heads(const Tensor& x);
// Input i, which is [b, s, heads * w] or has its heads already, as [b, heads, s, w]. Errors: `attribute` gives another
// number of heads.
Tensor headed(NodeContext& n, size_t i, std::string_view attribute);

}  // namespace tenon::onnx
