// Attention in simpler ops, for its decomposition and its gradient.
#pragma once

#include "core/tensor/tensor.h"
#include "ep_api/ep_api.h"

namespace tenon::ops {

// The parts of attention. Heads that share keys have their own axis: query [b, g, r, q, w], key [b, g, 1, k, w], value
// [b, g, 1, k, v]. Narrow floats are converted to f32.
struct AttentionParts {
  Tensor query, key, value;
  Tensor bent;    // tanh(score / softcap); undefined without a softcap
  Tensor scores;  // [b, g, r, q, k]; -inf where a key is masked
  bool masked = false;
};

// `bias` and `lengths` may be undefined.
AttentionParts attention_parts(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                               const Tensor& lengths, const ep_attention_attributes& at, double scale, double softcap);

// exp(scores - most) and `most`, the greatest score; it counts as 0 if there is no score.
struct AttentionPowers {
  Tensor powers, most;
};
AttentionPowers attention_powers(const Tensor& scores);

}  // namespace tenon::ops
