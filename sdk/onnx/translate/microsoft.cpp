// Operators of com.microsoft that ONNX Runtime writes into optimised transformers.
#include <cmath>
#include <numeric>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/transformer.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

Tensor with_bias(NodeContext& n, size_t bias) { return n.has(bias) ? add(n.input(0), n.input(bias)) : n.input(0); }

TensorList bias_gelu(NodeContext& n) { return {gelu(add(n.input(0), n.input(1)))}; }
TensorList exact_gelu(NodeContext& n) { return {gelu(n.input(0))}; }
TensorList fast_gelu(NodeContext& n) { return {gelu(with_bias(n, 1), "tanh")}; }
TensorList quick_gelu(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {mul(x, sigmoid(mul(x, Scalar(n.number("alpha", 1.702)))))};
}

SizeList last_axis(const Tensor& x) { return SizeList{size_at(x, x.rank() - 1)}; }

// Output 3 is the sum of input and skip; the outputs for mean and deviation are for training.
std::string skip_why_not(const Node& node) {
  const auto wanted = [&](size_t i) { return i < node.outputs.size() && node.outputs[i] >= 0; };
  return wanted(1) || wanted(2) ? "its output of the mean or inverse deviation is used, which is for training."
                                : std::string();
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
  return more ? "its output of the inverse deviation is used, which is for training." : std::string();
}

// Like LayerNormalization, but only divides by the root mean square.
TensorList simplified_layer_normalization(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(-1, x.rank());
  const SymDims dims = sizes(x);
  const SizeList inner(SymDims(std::span<const SymDim>(dims.begin() + axis, dims.end())));
  return {mul(cast(rms_norm(x, inner, Tensor(), n.number("epsilon", 1e-5)), n.dtype(1)), n.input(1))};
}

constexpr Translator kMicrosoftRows[] = {
    {.domain = kMicrosoft, .op_type = "BiasGelu", .since = 1, .translate = bias_gelu, .wide = true},
    {.domain = kMicrosoft, .op_type = "FastGelu", .since = 1, .translate = fast_gelu, .wide = true},
    {.domain = kMicrosoft, .op_type = "Gelu", .since = 1, .translate = exact_gelu},
    {.domain = kMicrosoft, .op_type = "QuickGelu", .since = 1, .translate = quick_gelu, .wide = true},
    {.domain = kMicrosoft,
     .op_type = "SkipLayerNormalization",
     .since = 1,
     .translate = skip_layer_normalization,
     .why_not = skip_why_not,
     .wide = true},
    {.domain = kMicrosoft,
     .op_type = "SkipSimplifiedLayerNormalization",
     .since = 1,
     .translate = skip_rms_normalization,
     .why_not = skip_why_not,
     .wide = true},
    {.domain = kMicrosoft,
     .op_type = "SimplifiedLayerNormalization",
     .since = 1,
     .translate = simplified_layer_normalization,
     .why_not = simplified_why_not},
    {.op_type = "SimplifiedLayerNormalization",
     .since = 1,
     .translate = simplified_layer_normalization,
     .why_not = simplified_why_not},
};

}  // namespace

std::span<const Translator> microsoft_translators() { return kMicrosoftRows; }

}  // namespace tenon::onnx
