// Attention, shared by operators of several domains.
#pragma once

#include <string_view>

#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

// The inputs and options that decide which keys a query reads, and with which weight.
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

// Adds a score per query head from `sink` [h]. It takes part in the softmax but contributes no value.
void add_sink(NodeContext& n, const Tensor& sink, Scores* s);

// 1 / sqrt of the last dim of `query`.
double usual_scale(const Tensor& query);
// Reshape [b, s, heads * w] to [b, heads, s, w], and back.
Tensor with_heads(NodeContext& n, const Tensor& x, int64_t heads);
Tensor without_heads(const Tensor& x);
// Input i as [b, heads, s, w]; it may come as [b, s, heads * w] or in this form. Errors: `attribute` gives another
// number of heads.
Tensor headed(NodeContext& n, size_t i, std::string_view attribute);

}  // namespace tenon::onnx
