// Gradients of attention, which recomputes the weights from its inputs, and of the rotation of pairs by angles.
#include "core/ops/decompose/attention.h"
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::gradients {
namespace {

Tensor optional(const autograd::Backward& b, size_t i) { return b.has(i) ? b.input(i) : Tensor(); }

Tensor shaped(const Tensor& x, const SymDims& dims) { return tenon::reshape(x, SizeList(dims)); }
Tensor summed_heads(const Tensor& x, const Tensor& like) { return shaped(tenon::sum(x, 2), sizes(like)); }

// With P the weights: dV = P^T dO; dP = dO V^T; the gradient of the scores is P * (dP - sum(P * dP) + gradient of
// log_sum). `log_sum` [b, h, q, 1] may be undefined, and so may either gradient of the results.
void give_attention(const autograd::Backward& b, const Tensor& log_sum, const Tensor& of_result,
                    const Tensor& of_log_sum) {
  const ep_attention_attributes& at = b.attributes<AttentionAttributes>().attention;
  const double scale = b.scalar(0);
  const double softcap = b.scalar(1);
  const Tensor query = b.input(0), key = b.input(1), value = b.input(2);
  const ops::AttentionParts parts =
      ops::attention_parts(query, key, value, optional(b, 3), optional(b, 4), at, scale, softcap);
  SymDims rows = sizes(parts.scores);
  rows[4] = 1;
  Tensor weights;
  if (log_sum.defined()) {
    const Tensor logs = shaped(log_sum, rows);
    const Tensor none = tenon::isinf(logs);
    weights = tenon::exp(parts.scores - tenon::where(none, Scalar(0), logs));
  } else {
    const ops::AttentionPowers all = ops::attention_powers(parts.scores);
    const Tensor total = tenon::sum(all.powers, 4, true);
    weights = all.powers / tenon::where(tenon::eq(total, Scalar(0)), Scalar(1), total);
  }
  Tensor slope;
  if (of_result.defined()) {
    rows[4] = size_at(value, 3);
    const Tensor grad = shaped(tenon::cast(of_result, weights.dtype()), rows);
    if (b.wants(2)) b.give(2, summed_heads(tenon::matmul(tenon::transpose(weights, -2, -1), grad), value));
    const Tensor back = tenon::matmul(grad, tenon::transpose(parts.value, -2, -1));
    slope = weights * (back - tenon::sum(weights * back, 4, true));
    rows[4] = 1;
  }
  if (of_log_sum.defined()) {
    const Tensor more = weights * shaped(of_log_sum, rows);
    slope = slope.defined() ? slope + more : more;
  }
  if (b.wants(3)) {
    SymDims dims = sizes(query);
    dims[3] = size_at(key, 2);
    b.give(3, shaped(slope, dims));
  }
  if (parts.bent.defined()) slope = slope * (1.0 - tenon::square(parts.bent));
  if (b.wants(0)) b.give(0, shaped(tenon::matmul(slope, parts.key) * scale, sizes(query)));
  if (b.wants(1)) {
    b.give(1, summed_heads(tenon::matmul(tenon::transpose(slope, -2, -1), parts.query), key) * scale);
  }
}

}  // namespace

void attention(const autograd::Backward& b) { give_attention(b, Tensor(), b.grad(), Tensor()); }

void attention_with_log_sum(const autograd::Backward& b) { give_attention(b, b.result(1), b.grad(0), b.grad(1)); }

void rotary_embedding(const autograd::Backward& b) {
  if (b.wants(1) || b.wants(2)) {
    throw Error(Subject{"rotary_embedding"}, Code::unsupported, "cos and sin have no gradient.",
                "Write the rotation as products and sums where angles are learned.");
  }
  const bool interleaved = b.attributes<RotaryAttributes>().rotary.mode == EP_ROTARY_INTERLEAVED;
  b.give(0, tenon::rotary_embedding(b.grad(), b.input(1), tenon::neg(b.input(2)), optional(b, 3), interleaved));
}

}  // namespace tenon::gradients
