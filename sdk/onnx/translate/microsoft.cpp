// Operators of com.microsoft that ONNX Runtime writes into optimised transformers.
#include <cmath>
#include <numeric>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/transformer.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

Tensor with_bias(NodeContext& n, size_t bias) { return n.has(bias) ? add(n.input(0), n.input(bias)) : n.input(0); }

TensorList bias_gelu(NodeContext& n) { return {gelu(add(n.input(0), n.input(1)))}; }
TensorList exact_gelu(NodeContext& n) { return {gelu(n.input(0))}; }
TensorList fast_gelu(NodeContext& n) { return {gelu(with_bias(n, 1), "tanh")}; }
TensorList quick_gelu(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {mul(x, sigmoid(mul(x, Scalar(n.number("alpha", 1.702)))))};
}

SizeList last_axis(const Tensor& x) { return SizeList{size_at(x, x.rank() - 1)}; }

// The sum of input and skip is output 3; means and deviations are for training.
std::string skip_why_not(const Node& node) {
  const auto wanted = [&](size_t i) { return i < node.outputs.size() && node.outputs[i] >= 0; };
  return wanted(1) || wanted(2) ? "its mean or inverse deviation is wanted, which are for training." : std::string();
}

Tensor skipped(NodeContext& n, size_t bias) {
  if (n.rank(0) < 1) n.invalid("its input is one number");
  const Tensor sum = add(n.input(0), n.input(1));
  return n.has(bias) ? add(sum, n.input(bias)) : sum;
}

TensorList skip_layer_normalization(NodeContext& n) {
  const Tensor sum = skipped(n, 4);
  const Tensor y = layer_norm(sum, last_axis(sum), n.input(2), n.optional(3), n.number("epsilon", 1e-12));
  return {y, Tensor(), Tensor(), sum};
}

TensorList skip_rms_normalization(NodeContext& n) {
  const Tensor sum = skipped(n, 3);
  return {rms_norm(sum, last_axis(sum), n.input(2), n.number("epsilon", 1e-12)), Tensor(), Tensor(), sum};
}

std::string simplified_why_not(const Node& node) {
  const bool more = node.outputs.size() > 1 && node.outputs[1] >= 0;
  return more ? "its inverse deviation is wanted, which is for training." : std::string();
}

// As LayerNormalization, by the root mean square alone.
TensorList simplified_layer_normalization(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(-1, x.rank());
  const SymDims dims = sizes(x);
  const SizeList inner(SymDims(std::span<const SymDim>(dims.begin() + axis, dims.end())));
  return {mul(cast(rms_norm(x, inner, Tensor(), n.number("epsilon", 1e-5)), n.dtype(1)), n.input(1))};
}

std::string fused_matmul_why_not(const Node& node) {
  for (const char* name : {"transBatchA", "transBatchB"}) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end() && found->second.i != 0) return fmt::format("its {} is not 0.", name);
  }
  return {};
}

TensorList fused_matmul(NodeContext& n) {
  const auto turned = [&](size_t i, const char* name) {
    const Tensor& x = n.input(i);
    return n.flag(name, false) && x.rank() > 1 ? transpose(x, -1, -2) : x;
  };
  const Tensor product = matmul(turned(0, "transA"), turned(1, "transB"));
  const double alpha = n.number("alpha", 1.0);
  return {alpha == 1.0 ? product : mul(product, Scalar(alpha))};
}

std::string fused_conv_why_not(const Node& node) {
  const auto activation = node.attributes.find("activation");
  if (activation == node.attributes.end()) return {};
  for (const char* known : {"", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"}) {
    if (activation->second.s == known) return {};
  }
  return fmt::format("its activation is '{}'.", activation->second.s);
}

TensorList fused_conv(NodeContext& n) {
  Tensor y = conv_of_node(n, n.input(0), n.input(1), n.optional(2));
  if (n.has(3)) {
    if (!same_sizes(sizes(y), n.sizes(3)))
      n.invalid(
          fmt::format("its input 3, 'Z', of shape {} is added to a convolution of shape {}", n.sizes(3), sizes(y)));
    y = add(y, n.input(3));
  }
  const std::string activation = n.text("activation", "");
  std::vector<double> numbers;
  if (n.find("activation_params") != nullptr) {
    for (const float number : n.require("activation_params", Attribute::Kind::numbers).floats)
      numbers.push_back(static_cast<double>(number));
  }
  const size_t wanted = activation == "LeakyRelu" ? 1 : activation == "Clip" || activation == "HardSigmoid" ? 2 : 0;
  if (numbers.size() < wanted)
    n.invalid(fmt::format("{} needs {} activation_params, not {}", activation, wanted, numbers.size()));
  if (activation == "Relu") return {relu(y)};
  if (activation == "Sigmoid") return {sigmoid(y)};
  if (activation == "Tanh") return {tanh(y)};
  if (activation == "LeakyRelu") return {leaky_relu(y, numbers[0])};
  if (activation == "Clip") return {clamp(y, Scalar(numbers[0]), Scalar(numbers[1]))};
  if (activation == "HardSigmoid") return {hard_sigmoid(y, numbers[0], numbers[1])};
  return {y};
}

constexpr Translator kRows[] = {
    wide(of_domain(kDomain, "BiasGelu", 1, bias_gelu)),
    wide(of_domain(kDomain, "FastGelu", 1, fast_gelu)),
    of_domain(kDomain, "FusedConv", 1, fused_conv, fused_conv_why_not),
    of_domain(kDomain, "FusedMatMul", 1, fused_matmul, fused_matmul_why_not),
    of_domain(kDomain, "Gelu", 1, exact_gelu),
    wide(of_domain(kDomain, "QuickGelu", 1, quick_gelu)),
    wide(of_domain(kDomain, "SkipLayerNormalization", 1, skip_layer_normalization, skip_why_not)),
    wide(of_domain(kDomain, "SkipSimplifiedLayerNormalization", 1, skip_rms_normalization, skip_why_not)),
    of_domain(kDomain, "SimplifiedLayerNormalization", 1, simplified_layer_normalization, simplified_why_not),
    {"SimplifiedLayerNormalization", 1, simplified_layer_normalization, simplified_why_not},
};

}  // namespace

std::span<const Translator> microsoft_translators() { return kRows; }

}  // namespace tenon::onnx
