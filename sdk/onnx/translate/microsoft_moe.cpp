// MoE of com.microsoft: each row goes through the experts with the highest scores.
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kMostExperts = 1024;

std::string moe_why_not(const Node& node) {
  const auto fusion = node.attributes.find("swiglu_fusion"), type = node.attributes.find("activation_type");
  const auto after = node.attributes.find("swiglu_limit_after_activation");
  if (fusion != node.attributes.end() && (fusion->second.i < 0 || fusion->second.i > 2))
    return fmt::format("its swiglu_fusion is {}; 0, 1 and 2 are known.", fusion->second.i);
  if (after != node.attributes.end() && after->second.i != 0) return "its swiglu_limit_after_activation is not 0.";
  for (const char* known : {"relu", "gelu", "silu", "swiglu", "identity"}) {
    if (type == node.attributes.end() || type->second.s == known) return {};
  }
  return fmt::format("its activation_type is '{}', which is not translated.", type->second.s);
}

// The product of `x` and one expert's weights [o, i] from input `weights`, plus its bias from input `bias`.
Tensor product_of_expert(NodeContext& n, const Tensor& x, size_t weights, size_t bias, int64_t expert) {
  const Tensor y = matmul(x, t(select(n.input(weights), 0, expert)));
  return n.has(bias) ? add(y, select(n.input(bias), 0, expert)) : y;
}

// gate * sigmoid(alpha * gate) * (line + beta). Gates and lines are alternate columns (fusion 1), two halves (2), or
// separate products (0).
Tensor swiglu(NodeContext& n, const Tensor& x, const Tensor& first, int64_t expert) {
  const int64_t fusion = n.integer("swiglu_fusion", 0), width = first.dim(-1) / 2;
  Tensor gate = first, line;
  if (fusion == 1) {
    const Tensor pairs = reshape(first, SizeList{size_at(first, 0), width, 2});
    gate = select(pairs, 2, 0);
    line = select(pairs, 2, 1);
  } else if (fusion == 2) {
    gate = narrow(first, 1, 0, width);
    line = narrow(first, 1, width, width);
  } else {
    if (!n.has(6)) n.invalid("its swiglu has neither fused weights nor fc3_experts_weights");
    line = product_of_expert(n, x, 6, 7, expert);
  }
  if (n.find("swiglu_limit") != nullptr) {
    const double limit = n.number("swiglu_limit", 0.0);
    gate = clamp(gate, std::nullopt, Scalar(limit));
    line = clamp(line, Scalar(-limit), Scalar(limit));
  }
  const Tensor open = mul(gate, sigmoid(mul(gate, Scalar(n.number("activation_alpha", 1.0)))));
  return mul(open, add(line, Scalar(n.number("activation_beta", 0.0))));
}

Tensor through_expert(NodeContext& n, const Tensor& x, int64_t expert) {
  const Tensor first = product_of_expert(n, x, 2, 3, expert);
  const std::string type = n.text("activation_type", "relu");
  if (type == "swiglu") return product_of_expert(n, swiglu(n, x, first, expert), 4, 5, expert);
  Tensor hidden = type == "relu"   ? relu(first)
                  : type == "gelu" ? gelu(first, "tanh")
                  : type == "silu" ? silu(first)
                                   : first;
  if (n.has(6)) hidden = mul(hidden, product_of_expert(n, x, 6, 7, expert));
  return product_of_expert(n, hidden, 4, 5, expert);
}

// The weight of each expert [rows, experts] for each row: its probability if it is among the k greatest, else 0.
Tensor weights_of_experts(NodeContext& n, const Tensor& scores) {
  const int64_t k = n.integer("k", 1), experts = scores.dim(1);
  if (k < 1 || k > experts) n.invalid(fmt::format("it cannot choose {} of {} experts", k, experts));
  const Tensor chances = softmax(cast(scores, DType::f32), -1);
  auto [values, places] = topk(chances, k);
  if (n.flag("normalize_routing_weights", false)) values = div(values, sum(values, {1}, true));
  return scatter(zeros_like(chances), 1, places, values);
}

TensorList mixture_of_experts(NodeContext& n) {
  const Tensor& given = n.input(0);
  const int64_t experts = n.rank(1) == 2 ? n.dims(1)[1] : 0;
  if ((given.rank() != 2 && given.rank() != 3) || experts < 1 || experts > kMostExperts || n.rank(2) != 3 ||
      n.rank(4) != 3 || n.dims(2)[0] != experts || n.dims(4)[0] != experts)
    n.invalid(fmt::format("its input, scores and weights do not fit; their shapes are {}, {}, {} and {}", n.sizes(0),
                          n.sizes(1), n.sizes(2), n.sizes(4)));
  const Tensor rows = reshape(given, SizeList{n.product(0, 0, given.rank() - 1), size_at(given, given.rank() - 1)});
  const Tensor weights = weights_of_experts(n, n.input(1));
  Tensor total;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const Tensor part = mul(cast(through_expert(n, rows, expert), DType::f32), narrow(weights, 1, expert, 1));
    total = total.defined() ? add(total, part) : part;
  }
  return {cast(reshape(total, SizeList(sizes(given))), given.dtype())};
}

constexpr Translator kMicrosoftMoeRows[] = {
    {.domain = kMicrosoft, .op_type = "MoE", .since = 1, .translate = mixture_of_experts, .why_not = moe_why_not},
};

}  // namespace

std::span<const Translator> microsoft_moe_translators() { return kMicrosoftMoeRows; }

}  // namespace tenon::onnx
