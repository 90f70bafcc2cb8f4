// Losses.
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

std::string reduction_why_not(const Node& node) {
  const auto reduction = node.attributes.find("reduction");
  if (reduction == node.attributes.end()) return {};
  const std::string& text = reduction->second.s;
  return text == "none" || text == "sum" || text == "mean"
             ? std::string()
             : fmt::format("its reduction '{}' is not none, sum or mean.", text);
}

// -weight[target] * x[.., target, ..] for each target. The mean divides by the sum of the weights. x is [n, c, d..],
// target is [n, d..].
Tensor negative_log_likelihood(NodeContext& n, const Tensor& x, const Tensor& target, const Tensor& weight) {
  Tensor ignored, index = target;
  if (n.find("ignore_index") != nullptr) {
    ignored = eq(target, Scalar(n.integer("ignore_index", 0)));
    index = where(ignored, Scalar(0), target);
  }
  Tensor loss = neg(squeeze(gather(x, 1, unsqueeze(index, 1)), 1));
  Tensor weights = weight.defined() ? gather_slices(weight, 0, index) : ignored.defined() ? ones_like(loss) : Tensor();
  if (ignored.defined()) weights = where(ignored, Scalar(0), weights);
  if (weights.defined()) loss = mul(loss, weights);
  const std::string reduction = n.text("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return sum(loss);
  return weights.defined() ? div(sum(loss), sum(weights)) : mean(loss);
}

TensorList nll_loss(NodeContext& n) { return {negative_log_likelihood(n, n.input(0), n.input(1), n.optional(2))}; }

TensorList cross_entropy(NodeContext& n) {
  const Tensor scores = log_softmax(n.input(0), 1);
  return {negative_log_likelihood(n, scores, n.input(1), n.optional(2)), scores};
}

constexpr Translator kLossRows[] = {
    {.op_type = "NegativeLogLikelihoodLoss",
     .since = 12,
     .translate = nll_loss,
     .why_not = reduction_why_not,
     .wide = true},
    {.op_type = "SoftmaxCrossEntropyLoss",
     .since = 12,
     .translate = cross_entropy,
     .why_not = reduction_why_not,
     .wide = true},
};

}  // namespace

std::span<const Translator> loss_translators() { return kLossRows; }

}  // namespace tenon::onnx
