// Random numbers: from the attribute `seed`, or the next ones of the default generator. A recorded model would give the
// same numbers in every run, so a model that draws without a seed runs node after node.
#include <bit>
#include <optional>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

std::optional<int64_t> seed_of(NodeContext& n) {
  if (n.find("seed") == nullptr) {
    NodeContext::require_eager();
    return std::nullopt;
  }
  if (n.find("seed")->kind == Attribute::Kind::integer) return n.integer("seed", 0);  // for Dropout
  return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(n.number("seed", 0))));
}

Tensor uniform(NodeContext& n, const Dims& dims, DType dtype) {
  const std::optional<int64_t> seed = seed_of(n);
  return seed ? philox_uniform(dims, *seed, 0, dtype, n.device()) : rand(dims, dtype, n.device());
}

// The dtype that the node states, or `initial`.
DType stated(NodeContext& n, DType initial) {
  if (n.find("dtype") == nullptr) return initial;
  const DType dtype = dtype_of_onnx(static_cast<int32_t>(n.integer("dtype", 1)));
  if (dtype == DType::none) n.unsupported("its dtype is one that Tenon does not have");
  return dtype;
}

Dims stated_dims(NodeContext& n) {
  const auto shape = n.integers("shape");
  if (!shape) n.invalid("it has no shape");
  return Dims(std::span<const int64_t>(*shape));
}

DType floating(NodeContext& n, DType dtype) {
  if (!is_floating(dtype)) n.invalid(fmt::format("its dtype is {}, which is not floating-point", dtype_name(dtype)));
  return dtype;
}

TensorList normal_of(NodeContext& n, const Dims& dims, DType dtype) {
  const std::optional<int64_t> seed = seed_of(n);
  const Tensor numbers = seed ? philox_normal(dims, *seed, 0, dtype, n.device()) : randn(dims, dtype, n.device());
  return {add(mul(numbers, Scalar(n.number("scale", 1))), Scalar(n.number("mean", 0)))};
}

TensorList uniform_of(NodeContext& n, const Dims& dims, DType dtype) {
  const double low = n.number("low", 0), high = n.number("high", 1);
  return {add(mul(uniform(n, dims, dtype), Scalar(high - low)), Scalar(low))};
}

TensorList normal(NodeContext& n) { return normal_of(n, stated_dims(n), floating(n, stated(n, DType::f32))); }
TensorList uniform(NodeContext& n) { return uniform_of(n, stated_dims(n), floating(n, stated(n, DType::f32))); }
TensorList normal_like(NodeContext& n) { return normal_of(n, n.dims(0), floating(n, stated(n, n.dtype(0)))); }
TensorList uniform_like(NodeContext& n) { return uniform_of(n, n.dims(0), floating(n, stated(n, n.dtype(0)))); }

TensorList bernoulli_of(NodeContext& n) {
  const Tensor& p = n.input(0);
  return {cast(lt(uniform(n, p.dims(), DType::f32), p), stated(n, p.dtype()))};
}

// If exponential random numbers are divided by weights, each position holds the least one with a probability
// proportional to its weight.
TensorList multinomial_of(NodeContext& n) {
  const Tensor& logits = n.input(0);
  const int64_t samples = n.integer("sample_size", 1);
  const Dims dims = {logits.dims()[0], samples, logits.dims()[1]};
  const Tensor race = log(neg(log1p(neg(uniform(n, dims, DType::f32)))));
  return {cast(argmax(sub(unsqueeze(cast(logits, DType::f32), 1), race), 2), stated(n, DType::i32))};
}

// Without training mode y = x, with a mask of ones. Elements are dropped only if the ratio is above 0.
TensorList dropout(NodeContext& n) {
  const Tensor& x = n.input(0);
  const bool flags = n.version() >= 10;  // the mask consists of bools
  const bool trains = n.version() >= 12 && n.has(2) && n.scalar(2).to_int() != 0;
  const double ratio = !trains ? 0.0 : n.has(1) ? n.scalar(1).to_double() : 0.5;
  if (!(ratio >= 0 && ratio < 1)) n.invalid(fmt::format("its ratio is {}; it must be in [0, 1)", ratio));
  if (ratio == 0) {
    if (!n.wants(1)) return {x};
    return {x, full(n.dims(0), flags ? Scalar(true) : Scalar(1), flags ? DType::boolean : n.dtype(0), n.device())};
  }
  const Tensor mask = ge(uniform(n, x.dims(), DType::f32), Scalar(ratio));
  return {where(mask, mul(x, Scalar(1 / (1 - ratio))), Scalar(0.0)), mask};
}

std::string dropout_why_not(const Node& node) {
  if (node.version >= 7) return {};
  const auto test = node.attributes.find("is_test");
  return test != node.attributes.end() && test->second.i != 0 ? std::string()
                                                              : "it drops random elements (training mode).";
}

constexpr Translator kRandomRows[] = {
    {.op_type = "Bernoulli", .since = 15, .translate = bernoulli_of},
    {.op_type = "Dropout", .since = 1, .translate = dropout, .why_not = dropout_why_not},
    {.op_type = "Multinomial", .since = 7, .translate = multinomial_of},
    {.op_type = "RandomNormal", .since = 1, .translate = normal},
    {.op_type = "RandomNormalLike", .since = 1, .translate = normal_like},
    {.op_type = "RandomUniform", .since = 1, .translate = uniform},
    {.op_type = "RandomUniformLike", .since = 1, .translate = uniform_like},
};

}  // namespace

std::span<const Translator> random_translators() { return kRandomRows; }

}  // namespace tenon::onnx
