// Attention in simpler ops, which its decomposition and its gradient share.
#pragma once

#include "core/tensor/tensor.h"
#include "ep_api/ep_api.h"

namespace tenon::ops {

// Heads that share keys are an axis of their own: query [b, g, r, q, w], key [b, g, 1, k, w], value [b, g, 1, k, v].
// Narrow floats are f32 here.
struct AttentionParts {
  Tensor query, key, value;
  Tensor bent;    // tanh(score / softcap); undefined without a softcap
  Tensor scores;  // [b, g, r, q, k], -inf where a key takes no part
  bool masked = false;
};

// `bias` and `lengths` may be undefined.
AttentionParts attention_parts(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                               const Tensor& lengths, const ep_attention_attributes& at, double scale, double softcap);

// exp(scores - most), where the greatest of no scores is 0, and what is taken off.
struct AttentionPowers {
  Tensor powers, most;
};
AttentionPowers attention_powers(const Tensor& scores);

}  // namespace tenon::ops
