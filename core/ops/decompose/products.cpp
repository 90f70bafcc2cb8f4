// Products with an epilogue as the bare product and the epilogue's ops.
#include "core/ops/decompose/result.h"
#include "core/ops/kernels.h"
#include "core/ops/kernels/epilogue.h"

namespace tenon::ops {
namespace {

// The product of `call` without bias, residual and activation, whose attributes are `bare`.
template <class Attributes>
Tensor bare_product(const OpCall& call, const Attributes& bare, bool has_epilogue) {
  if (!has_epilogue) {
    throw Error(Code::unsupported, sentence(call.op->name, ": a bare product is not made of simpler primitives."));
  }
  return functors::record(static_cast<OpId>(call.op->id), {&input(call, 0), &input(call, 1), nullptr, nullptr}, &bare);
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
  const Tensor bias = optional(call, 2);
  const Tensor residual = optional(call, 3);
  Tensor result = bare_product(call, attributes, bias.defined() || residual.defined() || activation.id != 0);
  if (bias.defined()) result = add(result, bias);
  if (residual.defined()) result = add(result, residual);
  store(call, activate(result, activation));
}

void decompose_conv(const OpCall& call) {
  ConvolutionAttributes attributes = call.attributes_as<ConvolutionAttributes>();
  const Activation activation = activation_of(call, attributes.activation);
  attributes.activation = 0;
  const Tensor bias = optional(call, 2);
  const Tensor residual = optional(call, 3);
  Tensor result = bare_product(call, attributes, bias.defined() || residual.defined() || activation.id != 0);
  if (bias.defined()) {
    Dims dims = Dims::filled(result.rank() - 1, 1);
    dims[0] = bias.elements();
    result = add(result, reshape(bias, dims));
  }
  if (residual.defined()) result = add(result, residual);
  store(call, activate(result, activation));
}

}  // namespace tenon::ops
