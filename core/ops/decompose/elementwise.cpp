// Decompositions of element-wise ops.
#include "core/ops/attributes.h"
#include "core/ops/decompose/result.h"
#include "core/ops/functors/half.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

namespace tenon::ops {
namespace {

constexpr double kInverseRootOfTwo = 0.70710678118654752440;

// Calls `use` with argument `index` of a binary or ternary call, a tensor or a number.
template <class Use>
Tensor with_argument(const OpCall& call, size_t index, Use use) {
  return call.inputs[index] != nullptr ? use(*call.inputs[index]) : use(call.scalars[index]);
}

Scalar negated(const Scalar& number) {
  return number.dtype() == DType::f64 ? Scalar(-number.to_double()) : Scalar(0 - number.to_int());
}
Tensor negated(const Tensor& x) { return neg(x); }

Tensor widened(const Tensor& x) { return functors::Halves::widened(x); }
const Scalar& widened(const Scalar& x) { return x; }

Tensor sigmoid_of(const Tensor& x) { return div(Scalar(1.0), add(exp(neg(x)), Scalar(1.0))); }

}  // namespace

void decompose_neg(const OpCall& call) { store(call, mul(input(call, 0), Scalar(-1))); }
void decompose_abs(const OpCall& call) { store(call, maximum(input(call, 0), neg(input(call, 0)))); }
void decompose_square(const OpCall& call) { store(call, mul(input(call, 0), input(call, 0))); }
void decompose_rsqrt(const OpCall& call) { store(call, div(Scalar(1.0), sqrt(input(call, 0)))); }
void decompose_relu(const OpCall& call) { store(call, maximum(input(call, 0), Scalar(0))); }
void decompose_reciprocal(const OpCall& call) { store(call, div(Scalar(1.0), input(call, 0))); }
void decompose_sigmoid(const OpCall& call) { store(call, sigmoid_of(input(call, 0))); }
void decompose_silu(const OpCall& call) { store(call, mul(input(call, 0), sigmoid_of(input(call, 0)))); }

void decompose_gelu(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const Tensor distribution = add(erf(mul(x, Scalar(kInverseRootOfTwo))), Scalar(1.0));
  store(call, mul(mul(x, Scalar(0.5)), distribution));
}

void decompose_softsign(const OpCall& call) { store(call, div(input(call, 0), add(abs(input(call, 0)), Scalar(1.0)))); }

void decompose_mish(const OpCall& call) { store(call, mul(input(call, 0), tanh(softplus(input(call, 0))))); }

void decompose_sub(const OpCall& call) {
  if (call.inputs[0] == nullptr) {
    store(call, add(call.scalars[0], neg(input(call, 1))));
    return;
  }
  store(call, with_argument(call, 1, [&](const auto& other) { return add(input(call, 0), negated(other)); }));
}

void decompose_ne(const OpCall& call) {
  const size_t tensor = call.inputs[0] != nullptr ? 0 : 1;
  const Tensor same =
      with_argument(call, 1 - tensor, [&](const auto& other) { return eq(input(call, tensor), other); });
  store(call, logical_not(same));
}

void decompose_prelu(const OpCall& call) {
  if (call.inputs[0] == nullptr) {  // a number, which may be scaled
    const Tensor& weight = input(call, 1);
    const Scalar& number = call.scalars[0];
    return store(call, number.to_double() < 0 ? mul(weight, number) : full_like(weight, number));
  }
  const Tensor& x = input(call, 0);
  store(call, where(ge(x, Scalar(0)), x, with_argument(call, 1, [&](const auto& weight) { return mul(x, weight); })));
}

void decompose_clamp(const OpCall& call) {
  const Tensor low = with_argument(call, 1, [&](const auto& min) { return maximum(input(call, 0), min); });
  store(call, with_argument(call, 2, [&](const auto& max) { return minimum(low, max); }));
}

void decompose_fma(const OpCall& call) {
  const functors::Halves halves{&input(call, 0)};  // the other inputs have its dtype
  const Tensor product =
      with_argument(call, 1, [&](const auto& other) { return mul(widened(input(call, 0)), widened(other)); });
  store(call,
        with_argument(call, 2, [&](const auto& addend) { return halves.rounded(add(product, widened(addend))); }));
}

// Compares the values with the positions along the new axis.
void decompose_one_hot_values(const OpCall& call) {
  const auto& at = call.attributes_as<DepthAttributes>();
  const Tensor& index = input(call, 0);
  Dims along = Dims::filled(index.rank() - at.axis + 1, 1);
  along[0] = at.depth;
  const Tensor positions = where(lt(index, Scalar(0)), add(index, Scalar(at.depth)), index);
  const Tensor classes = reshape(arange(Scalar(at.depth), index.dtype(), index.device()), along);
  const Tensor hit = eq(unsqueeze(positions, at.axis), classes);
  store(call, cast(where(hit, call.scalars[1], call.scalars[0]), at.dtype));
}

}  // namespace tenon::ops
