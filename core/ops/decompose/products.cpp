// Writes a product with an epilogue as the bare product and the ops of the epilogue.
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "core/ops/rules/epilogue.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

template <class Attributes>
Tensor product(const OpCall& call, const Attributes& bare, const Tensor* bias) {
  return functors::apply(static_cast<OpId>(call.op->id), {&input(call, 0), &input(call, 1), bias, nullptr}, &bare);
}

// The product of `call` with its bias. `bare` are its attributes without an activation. If more follows (`has_more`)
// and the device has a product with bias, that is one launch; otherwise it is the bare product and `add_bias`.
template <class Attributes, class AddBias>
Tensor biased_product(const OpCall& call, const Attributes& bare, bool has_more, AddBias add_bias) {
  const Tensor bias = optional(call, 2);
  if (!bias.defined() && !has_more) {
    throw Error(Code::unsupported, fmt::format("{}: a bare product is not made of simpler primitives.", call.op->name));
  }
  if (!bias.defined()) return product(call, bare, nullptr);
  if (has_more) {
    try {
      return product(call, bare, &bias);
    } catch (const Error& error) {
      if (error.code() != Code::unsupported) throw;
    }
  }
  return add_bias(product(call, bare, nullptr), bias);
}

Activation activation_of(const OpCall& call, int32_t id) {
  if (id == 0) return {};
  return {id, call.scalars[kActivationSlot].to_double(), call.scalars[kActivationSlot + 1].to_double()};
}

}  // namespace

void decompose_matmul(const OpCall& call) {
  MatmulAttributes attributes = call.attributes_as<MatmulAttributes>();
  const Activation activation = activation_of(call, attributes.activation);
  attributes.activation = 0;
  const Tensor residual = optional(call, 3);
  Tensor result = biased_product(call, attributes, residual.defined() || activation.id != 0,
                                 [](const Tensor& bare, const Tensor& bias) { return add(bare, bias); });
  if (residual.defined()) result = add(result, residual);
  store(call, activate(result, activation));
}

void decompose_conv(const OpCall& call) {
  ConvolutionAttributes attributes = call.attributes_as<ConvolutionAttributes>();
  const Activation activation = activation_of(call, attributes.activation);
  attributes.activation = 0;
  const Tensor residual = optional(call, 3);
  const auto add_bias = [](const Tensor& bare, const Tensor& bias) {
    Dims dims = Dims::filled(bare.rank() - 1, 1);
    dims[0] = bias.elements();
    return add(bare, reshape(bias, dims));
  };
  Tensor result = biased_product(call, attributes, residual.defined() || activation.id != 0, add_bias);
  if (residual.defined()) result = add(result, residual);
  store(call, activate(result, activation));
}

}  // namespace tenon::ops
