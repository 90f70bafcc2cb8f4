// Optimiser steps: ai.onnx.preview.training.
#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.preview.training";

// The tensors of one optimised parameter: x, its gradient, and `states` more inputs.
struct Parameter {
  Tensor x, gradient;
  TensorList states;
};

// Inputs are the rate, the step, all x, all gradients, and all of each state. The gradient of the penalty is added to
// the gradient.
std::vector<Parameter> parameters(NodeContext& n, size_t states) {
  const size_t each = 2 + states, given = n.input_count() - 2;
  if (n.input_count() < 2 || given % each != 0)
    n.invalid(fmt::format("it has {} tensors after rate and step, which is not a multiple of {}", given, each));
  const size_t count = given / each;
  const double penalty = n.number("norm_coefficient", 0.0);
  std::vector<Parameter> list;
  for (size_t i = 0; i < count; ++i) {
    Parameter parameter{n.input(2 + i), n.input(2 + count + i), {}};
    for (size_t part = 1; part < each; ++part) {
      const size_t at = 2 + part * count + i;
      if (!same_sizes(n.sizes(at), n.sizes(2 + i)))
        n.invalid(fmt::format("its input {} has the shape {}, but the tensor that it belongs to, input {}, has {}", at,
                              n.sizes(at), 2 + i, n.sizes(2 + i)));
    }
    if (penalty != 0) parameter.gradient = add(mul(parameter.x, Scalar(penalty)), parameter.gradient);
    for (size_t state = 0; state < states; ++state) parameter.states.push_back(n.input(2 + (2 + state) * count + i));
    list.push_back(parameter);
  }
  return list;
}

// Reorders to all first results, then all second results, and so on.
TensorList by_result(const std::vector<TensorList>& of_parameters) {
  TensorList results;
  for (size_t result = 0; !of_parameters.empty() && result < of_parameters[0].size(); ++result) {
    for (const TensorList& each : of_parameters) results.push_back(each[result]);
  }
  return results;
}

Tensor rate(NodeContext& n, DType dtype) { return reshape(cast(n.input(0), dtype), Dims()); }
Tensor step(NodeContext& n, DType dtype) { return reshape(cast(n.input(1), dtype), Dims()); }
Tensor number(const Tensor& like, double value) { return full(Dims(), Scalar(value), like.dtype(), like.device()); }

TensorList momentum(NodeContext& n) {
  const double alpha = n.number("alpha", 0.0), beta = n.number("beta", 0.0);
  const bool nesterov = n.text("mode", "standard") == "nesterov";
  std::vector<TensorList> results;
  for (const Parameter& p : parameters(n, 1)) {
    const Tensor r = rate(n, p.x.dtype()), t = step(n, p.x.dtype());
    const Tensor weight = where(gt(t, Scalar(0)), number(p.x, beta), number(p.x, 1.0));
    const Tensor moved = add(mul(p.states[0], Scalar(alpha)), mul(p.gradient, weight));
    const Tensor direction = nesterov ? add(p.gradient, mul(moved, Scalar(alpha))) : moved;
    results.push_back({sub(p.x, mul(direction, r)), moved});
  }
  return by_result(results);
}

TensorList adagrad(NodeContext& n) {
  const double epsilon = n.number("epsilon", 0.0), decay = n.number("decay_factor", 0.0);
  std::vector<TensorList> results;
  for (const Parameter& p : parameters(n, 1)) {
    const Tensor r = div(rate(n, p.x.dtype()), add(mul(step(n, p.x.dtype()), Scalar(decay)), Scalar(1.0)));
    const Tensor squares = add(p.states[0], square(p.gradient));
    const Tensor change = div(mul(p.gradient, r), add(sqrt(squares), Scalar(epsilon)));
    results.push_back({sub(p.x, change), squares});
  }
  return by_result(results);
}

TensorList adam(NodeContext& n) {
  const double alpha = n.number("alpha", 0.9), beta = n.number("beta", 0.999), epsilon = n.number("epsilon", 0.0);
  const double penalty_after = n.number("norm_coefficient_post", 0.0);
  std::vector<TensorList> results;
  for (const Parameter& p : parameters(n, 2)) {
    const Tensor r = rate(n, p.x.dtype()), t = step(n, p.x.dtype());
    const Tensor first = add(mul(p.states[0], Scalar(alpha)), mul(p.gradient, Scalar(1 - alpha)));
    const Tensor second = add(mul(p.states[1], Scalar(beta)), mul(square(p.gradient), Scalar(1 - beta)));
    const auto rest = [&](double base) { return sub(number(p.x, 1.0), tenon::pow(number(p.x, base), t)); };
    const Tensor adjusted = where(gt(t, Scalar(0)), div(mul(r, sqrt(rest(beta))), rest(alpha)), r);
    const Tensor x = sub(p.x, mul(div(first, add(sqrt(second), Scalar(epsilon))), adjusted));
    results.push_back({mul(x, Scalar(1 - penalty_after)), first, second});
  }
  return by_result(results);
}

std::string gradient_why_not(const Node&) {
  return "it asks for the gradient of a part of the model; Tenon differentiates programs of its C++ API, not files.";
}
TensorList gradient(NodeContext& n) { n.unsupported(gradient_why_not(n.node())); }

constexpr Translator kTrainingRows[] = {
    {.domain = kDomain, .op_type = "Adagrad", .since = 1, .translate = adagrad},
    {.domain = kDomain, .op_type = "Adam", .since = 1, .translate = adam},
    {.domain = kDomain, .op_type = "Gradient", .since = 1, .translate = gradient, .why_not = gradient_why_not},
    {.domain = kDomain, .op_type = "Momentum", .since = 1, .translate = momentum},
};

}  // namespace

std::span<const Translator> training_translators() { return kTrainingRows; }

}  // namespace tenon::onnx
