// Newer operators of sequence models: gates, caches, linear attention, attention with score functions.
#include <cmath>

#include "core/graph/regions/control_flow.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

Tensor gate(const Tensor& x, double alpha) { return mul(x, sigmoid(alpha == 1.0 ? x : mul(x, Scalar(alpha)))); }

TensorList swish(NodeContext& n) { return {gate(n.input(0), n.number("alpha", 1.0))}; }

TensorList swiglu(NodeContext& n) { return {mul(gate(n.input(0), n.number("alpha", 1.0)), n.input(1))}; }

// Writes `update` into a cache along an axis, starting at the position of each batch.
TensorList tensor_scatter(NodeContext& n) {
  const Tensor &cache = n.input(0), &update = n.input(1);
  const int64_t axis = n.axis(-2, cache.rank());
  if (axis == 0 || cache.rank() != update.rank())
    n.invalid(fmt::format("an update of shape {} does not fit a cache of shape {}", update.dims(), cache.dims()));
  for (int32_t i = 0; i < cache.rank(); ++i) {
    if (i == axis ? update.dims()[i] > cache.dims()[i] || update.dims()[i] == 0 : update.dims()[i] != cache.dims()[i])
      n.invalid(fmt::format("an update of shape {} does not fit a cache of shape {}", update.dims(), cache.dims()));
  }
  const int64_t length = cache.dim(axis), count = update.dim(axis);
  Dims along = Dims::filled(cache.rank(), 1), batches = along;
  along[axis] = length;
  batches[0] = cache.dim(0);
  // The position in the update for each position of the cache.
  Tensor place = reshape(n.positions(length), along);
  const bool circular = n.text("mode", "linear") == "circular";
  // Linear updates must lie inside the cache. Positions of circular ones may grow without limit.
  if (n.has(2)) place = sub(place, reshape(circular ? n.input(2) : n.within(2, 0, length - count), batches));
  if (circular) place = remainder(place, Scalar(length));
  const Tensor written = logical_and(ge(place, Scalar(0)), lt(place, Scalar(count)));
  const Tensor index = expand(clamp(place, Scalar(0), Scalar(count - 1)), cache.dims());
  return {where(written, gather(update, axis, index), cache)};
}

TensorList causal_conv(NodeContext& n) {
  const Tensor &x = n.input(0), &weight = n.input(1);
  if (weight.dim(2) < 1)
    n.invalid(fmt::format("its weights have the shape {}; the last axis must not be empty", weight.dims()));
  const std::string activation = n.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.invalid(fmt::format("its activation is '{}'; it may be none, silu or swish", activation));
  const int64_t past = weight.dim(2) - 1;
  Dims before = x.dims();
  before[2] = past;
  if (n.has(3) && n.dims(3) != before) n.invalid(fmt::format("its past_state has shape {}, not {}", n.dims(3), before));
  const Tensor padded =
      past == 0 ? x : concat({n.has(3) ? n.input(3) : full(before, Scalar(0), x.dtype(), n.device()), x}, 2);
  const Tensor y = conv(padded, weight, n.optional(2), 1, 0, 1, x.dim(1));
  return {activation == "none" ? y : gate(y, 1.0), narrow(padded, 2, padded.dim(2) - past, past)};
}

// ---- linear attention ----

// [b, t, heads * d] as [t, b, heads, d] in f32: steps are the first axis.
Tensor steps_of(const Tensor& x, int64_t heads) {
  return permute(reshape(cast(x, DType::f32), {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {1, 0, 2, 3});
}

TensorList linear_attention(NodeContext& n) {
  const Tensor &q = n.input(0), &k = n.input(1), &v = n.input(2);
  const int64_t q_heads = n.integer("q_num_heads", 0), heads = n.integer("kv_num_heads", 0);
  const std::string rule = n.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.invalid(fmt::format("its update_rule is '{}'; it may be linear, gated, delta or gated_delta", rule));
  if (q_heads % heads != 0)
    n.invalid(fmt::format("{} heads of the query cannot share {} heads of the key", q_heads, heads));
  if (q.dim(2) % q_heads != 0 || v.dim(2) % heads != 0 || k.dim(2) != q.dim(2) / q_heads * heads)
    n.invalid(fmt::format("query, key and value of shapes {}, {} and {} do not fit the numbers of heads", q.dims(),
                          k.dims(), v.dims()));
  if (n.has(4) != gated || n.has(5) != delta)
    n.invalid(fmt::format("the update_rule '{}' {} a decay and {} a beta", rule, gated ? "needs" : "forbids",
                          delta ? "needs" : "forbids"));
  const int64_t batch = q.dim(0), d_k = q.dim(2) / q_heads, d_v = v.dim(2) / heads, group = q_heads / heads;
  const double given = n.number("scale", 0.0);
  const double scale = given == 0 ? 1.0 / std::sqrt(static_cast<double>(d_k)) : given;
  TensorList xs = {steps_of(q, q_heads), steps_of(k, heads), steps_of(v, heads)};
  if (gated) {
    if (n.rank(4) != 3 || (n.dims(4)[2] != heads && n.dims(4)[2] != heads * d_k))
      n.invalid(
          fmt::format("its decay has shape {}; rank 3 and one value per head or per key column are needed", n.dims(4)));
    xs.push_back(exp(steps_of(n.input(4), heads)));
  }
  if (delta) {
    if (n.rank(5) != 3 || (n.dims(5)[2] != heads && n.dims(5)[2] != 1))
      n.invalid(fmt::format("its beta has shape {}; rank 3 and one value per head or per step are needed", n.dims(5)));
    xs.push_back(steps_of(n.input(5), n.dims(5)[2]));
  }
  const Dims state_dims{batch, heads, d_k, d_v};
  if (n.has(3) && n.dims(3) != state_dims)
    n.invalid(fmt::format("its past_state has shape {}, not {}", n.dims(3), state_dims));
  const Tensor start = n.has(3) ? cast(n.input(3), DType::f32) : full(state_dims, Scalar(0.0), DType::f32, n.device());
  const Scanned all = scan(
      [&](const TensorList& carry, const TensorList& now) {
        Tensor state = carry[0], value = now[2];
        const Tensor key = unsqueeze(now[1], -1);
        if (gated) state = mul(state, unsqueeze(now[3], -1));
        if (delta) value = mul(sub(value, sum(mul(state, key), -2)), now[gated ? 4 : 3]);
        state = add(state, mul(key, unsqueeze(value, -2)));
        const Tensor query = reshape(now[0], {batch, heads, group, d_k});
        return Scanned{{state}, {matmul(query, state)}};  // [b, heads, group, d_v]
      },
      {start}, xs);
  const Tensor y = mul(permute(all.ys[0], {1, 0, 2, 3, 4}), Scalar(scale));
  return {cast(reshape(y, {batch, q.dim(1), q_heads * d_v}), q.dtype()),
          cast(all.carry[0], n.has(3) ? n.dtype(3) : q.dtype())};
}

// ---- attention whose scores and probabilities pass through functions of the model ----

Tensor through(NodeContext& n, const char* graph, const Tensor& x) {
  if (n.find(graph) == nullptr) return x;
  const ValueList made = n.run(n.graph(graph), {x});
  if (made.size() != 1 || made[0].tensor().dims() != x.dims())
    n.invalid(fmt::format("its {} must give one tensor of shape {}", graph, x.dims()));
  return cast(made[0].tensor().to(n.device()), x.dtype());
}

ValueList flex_attention(NodeContext& n) {
  const Tensor& q = n.input(0);
  Tensor k = n.input(1), v = n.input(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.dim(1) != v.dim(1) || k.dim(2) != v.dim(2) ||
      k.dim(3) != q.dim(3) || k.dim(1) == 0 || q.dim(1) % k.dim(1) != 0)
    n.invalid(fmt::format("query, key and value of shapes {}, {} and {} do not fit the numbers of heads", q.dims(),
                          k.dims(), v.dims()));
  const int64_t group = q.dim(1) / k.dim(1);
  const auto shared = [&](const Tensor& x) {
    if (group == 1) return x;
    const Tensor repeated = expand(unsqueeze(x, 2), {x.dim(0), x.dim(1), group, x.dim(2), x.dim(3)});
    return reshape(repeated, {x.dim(0), q.dim(1), x.dim(2), x.dim(3)});
  };
  k = shared(k), v = shared(v);
  const double scale = n.number("scale", 1.0 / std::sqrt(static_cast<double>(q.dim(3))));
  const auto precision = static_cast<int32_t>(n.integer("softmax_precision", 0));
  const DType wanted = precision != 0 ? dtype_of_onnx(precision) : q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (!is_floating(wanted))
    n.invalid(fmt::format("its softmax_precision is {}; it must be floating-point", onnx_type_name(precision)));
  const Scalar root(std::sqrt(scale));
  const Tensor scores = cast(matmul(mul(q, root), permute(mul(k, root), {0, 1, 3, 2})), wanted);
  const Tensor probabilities = through(n, "prob_mod", softmax(through(n, "score_mod", scores), -1));
  return {cast(matmul(probabilities, cast(v, wanted)), q.dtype())};
}

constexpr Translator kSequenceModelsRows[] = {
    {.op_type = "CausalConvWithState", .since = 27, .translate = causal_conv},
    {.domain = "ai.onnx.preview", .op_type = "FlexAttention", .since = 1, .translate_values = flex_attention},
    {.op_type = "LinearAttention", .since = 27, .translate = linear_attention},
    {.op_type = "SwiGLU", .since = 28, .translate = swiglu},
    {.op_type = "Swish", .since = 24, .translate = swish},
    {.op_type = "TensorScatter", .since = 24, .translate = tensor_scatter},
};

}  // namespace

std::span<const Translator> sequence_model_translators() { return kSequenceModelsRows; }

}  // namespace tenon::onnx
