// Products and convolutions that ONNX Runtime fuses with the operators after them.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// An activation and the defaults of its attributes, in the order in which operators list them.
struct Activation {
  std::string_view name;
  std::vector<double> initial;
  Tensor (*apply)(const Tensor& x, const double* p);
};

const std::vector<Activation>& activations() {
  using T = const Tensor&;
  using P = const double*;
  static const std::vector<Activation> all = {
      {"", {}, [](T x, P) { return x; }},
      {"Affine", {1.0, 0.0}, [](T x, P p) { return add(mul(x, Scalar(p[0])), Scalar(p[1])); }},
      {"Celu", {1.0}, [](T x, P p) { return celu(x, p[0]); }},
      {"Clip",
       {-3.4028234663852886e38, 3.4028234663852886e38},
       [](T x, P p) { return clamp(x, Scalar(p[0]), Scalar(p[1])); }},
      {"Elu", {1.0}, [](T x, P p) { return elu(x, p[0]); }},
      {"Gelu", {}, [](T x, P) { return gelu(x); }},
      {"HardSigmoid", {0.2, 0.5}, [](T x, P p) { return hard_sigmoid(x, p[0], p[1]); }},
      {"HardSwish", {}, [](T x, P) { return hardswish(x); }},
      {"LeakyRelu", {0.01}, [](T x, P p) { return leaky_relu(x, p[0]); }},
      {"ParametricSoftplus", {1.0, 1.0}, [](T x, P p) { return mul(softplus(mul(x, Scalar(p[1]))), Scalar(p[0])); }},
      {"QuickGelu", {1.702}, [](T x, P p) { return mul(x, sigmoid(mul(x, Scalar(p[0])))); }},
      {"Relu", {}, [](T x, P) { return relu(x); }},
      {"ScaledTanh", {1.0, 1.0}, [](T x, P p) { return mul(tanh(mul(x, Scalar(p[1]))), Scalar(p[0])); }},
      {"Selu", {1.67326319217681884765625, 1.05070102214813232421875}, [](T x, P p) { return selu(x, p[0], p[1]); }},
      {"Sigmoid", {}, [](T x, P) { return sigmoid(x); }},
      {"Silu", {}, [](T x, P) { return silu(x); }},
      {"Softplus", {}, [](T x, P) { return softplus(x); }},
      {"Softsign", {}, [](T x, P) { return softsign(x); }},
      {"Tanh", {}, [](T x, P) { return tanh(x); }},
      {"ThresholdedRelu", {1.0}, [](T x, P p) { return threshold(x, p[0], 0.0); }},
  };
  return all;
}

const Activation* find_activation(std::string_view name) {
  const auto found = std::find_if(activations().begin(), activations().end(),
                                  [&](const Activation& each) { return each.name == name; });
  return found == activations().end() ? nullptr : &*found;
}

std::string transposed_batch_why_not(const Node& node) {
  for (const char* name : {"transBatchA", "transBatchB"}) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end() && found->second.i != 0 && found->second.i != 1)
      return fmt::format("its {} is {}; it may be 0 or 1.", name, found->second.i);
  }
  return {};
}

// transBatchA moves the first axis of a behind the other batch axes; then transA swaps the last two.
TensorList fused_matmul(NodeContext& n) {
  const auto turned = [&](size_t i, const char* batch, const char* matrix) {
    Tensor x = n.input(i);
    if (n.flag(batch, false) && x.rank() > 2) x = movedim(x, {0}, {x.rank() - 2});
    return n.flag(matrix, false) && x.rank() > 1 ? transpose(x, -1, -2) : x;
  };
  const Tensor product = matmul(turned(0, "transBatchA", "transA"), turned(1, "transBatchB", "transB"));
  const double alpha = n.number("alpha", 1.0);
  return {alpha == 1.0 ? product : mul(product, Scalar(alpha))};
}

TensorList fused_gemm(NodeContext& n) {
  const std::string name = n.text("activation", "");
  constexpr const char* kNumbers[] = {"activation_alpha", "activation_beta", "activation_gamma"};
  std::vector<double> numbers = find_activation(name)->initial;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = n.number(kNumbers[i], numbers[i]);
  if (name == "Selu") numbers[1] = n.number(kNumbers[2], numbers[1]);  // the second attribute is gamma
  return {activated(n, gemm_of_node(n), name, numbers)};
}

// Adds input 3, which has the shape of `y`, and applies the activation.
TensorList finished_conv(NodeContext& n, const Tensor& y) {
  if (!n.has(3)) return {activated_by_list(n, y)};
  if (!same_sizes(sizes(y), n.sizes(3)))
    n.invalid(
        fmt::format("its input 3, 'Z', of shape {} must have the shape of the convolution, {}", n.sizes(3), sizes(y)));
  return {activated_by_list(n, add(y, n.input(3)))};
}

TensorList fused_conv(NodeContext& n) {
  return finished_conv(n, conv_of_node(n, n.input(0), n.input(1), n.optional(2)));
}

// The weights have channels as their second axis, like those of FusedConv.
TensorList channels_last_fused_conv(NodeContext& n) {
  return finished_conv(n, channels_last(conv_of_node(n, channels_first(n.input(0)), n.input(1), n.optional(2))));
}

constexpr Translator kMicrosoftFusedRows[] = {
    {.domain = kMicrosoft, .op_type = "FusedConv", .since = 1, .translate = fused_conv, .why_not = activation_why_not},
    {.domain = kMicrosoft, .op_type = "FusedGemm", .since = 1, .translate = fused_gemm, .why_not = activation_why_not},
    {.domain = kMicrosoft,
     .op_type = "FusedMatMul",
     .since = 1,
     .translate = fused_matmul,
     .why_not = transposed_batch_why_not},
    {.domain = kMicrosoft,
     .op_type = "NhwcFusedConv",
     .since = 1,
     .translate = channels_last_fused_conv,
     .why_not = activation_why_not},
    {.domain = kMicrosoft, .op_type = "TransposeMatMul", .since = 1, .translate = fused_matmul},
};

}  // namespace

std::string activation_why_not(const Node& node) {
  const auto activation = node.attributes.find("activation");
  if (activation == node.attributes.end() || find_activation(activation->second.s) != nullptr) return {};
  return fmt::format("its activation is '{}', which is not translated.", activation->second.s);
}

Tensor activated(NodeContext& n, const Tensor& x, std::string_view name, const std::vector<double>& numbers) {
  const Activation* activation = find_activation(name);
  if (activation == nullptr) n.unsupported(fmt::format("its activation '{}' is not translated", name));
  if (numbers.size() < activation->initial.size()) {
    n.invalid(fmt::format("{} needs {} activation_params, but {} are given", name, activation->initial.size(),
                          numbers.size()));
  }
  return activation->apply(x, numbers.data());
}

Tensor activated_by_list(NodeContext& n, const Tensor& x) {
  std::vector<double> numbers;
  if (n.find("activation_params") != nullptr) {
    for (const float number : n.require("activation_params", Attribute::Kind::numbers).floats)
      numbers.push_back(static_cast<double>(number));
  }
  return activated(n, x, n.text("activation", ""), numbers);
}

Tensor channels_first(const Tensor& x) { return movedim(x, {x.rank() - 1}, {1}); }
Tensor channels_last(const Tensor& x) { return movedim(x, {1}, {x.rank() - 1}); }

std::span<const Translator> microsoft_fused_translators() { return kMicrosoftFusedRows; }

}  // namespace tenon::onnx
