// Attention, and the rotation of queries and keys by their positions.
#include <cmath>
#include <limits>

#include "core/ops/floating_point.h"
#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "primitives/infer/broadcast-inl.h"

namespace tenon::functors {
namespace {

double inverse_root(int64_t value) {
  return in_default_state({static_cast<double>(value)},
                          [](const volatile double* numbers) { return 1 / std::sqrt(numbers[0]); });
}

Tensor index_or_none(std::string_view op, std::string_view name, const Tensor& tensor) {
  return tensor.defined() ? as_index(op, name, tensor) : tensor;
}

// The options of a call of attention.
struct How {
  int64_t before = -1;
  int64_t after = -1;
  bool align_end = false;
  std::optional<double> scale;
  double softcap = 0;
};

// The results if no query has a key.
void without_keys(const Tensor& query, const Tensor& value, DType dtype, std::span<Tensor> results) {
  Dims dims = query.dims();
  dims[3] = value.dim(3);
  results[0] = tenon::full(dims, Scalar(0), dtype, query.device());
  if (results.size() == 1) return;
  dims[3] = 1;
  const double none = -std::numeric_limits<double>::infinity();
  results[1] = tenon::full(dims, Scalar(none), dtype == DType::f64 ? dtype : DType::f32, query.device());
}

void attend(OpId id, std::initializer_list<const Tensor*> given, const How& how, std::span<Tensor> results) {
  const std::string_view op = op_row(id).name;
  const Tensor& query = *given.begin()[0];
  const Tensor& key = *given.begin()[1];
  const char* const names[] = {"query", "key", "value"};
  for (size_t i = 0; i < 3; ++i) {
    const Tensor& each = *given.begin()[i];
    require_defined(op, names[i], each);
    if (each.rank() != 4) refuse(op, "{} has rank {}; it must be 4.", names[i], each.rank());
  }
  if (how.before < -1 || how.after < -1) {
    refuse(op, "before is {} and after is {}; both must be at least -1.", how.before, how.after);
  }
  DType dtype = promote(promote(query.dtype(), key.dtype()), given.begin()[2]->dtype());
  if (!is_floating(dtype)) dtype = DType::f32;
  const Tensor& bias = *given.begin()[3];
  const Tensor lengths = index_or_none(op, "lengths", *given.begin()[4]);
  const Tensor cast_inputs[] = {tenon::cast(query, dtype), tenon::cast(key, dtype),
                                tenon::cast(*given.begin()[2], dtype),
                                bias.defined() && bias.dtype() != DType::boolean ? tenon::cast(bias, dtype) : bias};
  AttentionAttributes attributes{};
  attributes.attention = {how.align_end ? EP_ATTENTION_END : EP_ATTENTION_START, 0, how.before, how.after};
  const int64_t width = query.dim(-1);
  if (width == 0) refuse(op, "query of shape {} has rows of no elements.", query.dims());
  if (!is_open(key) && !is_open(query) && is_empty(key)) {
    const Tensor& value = *given.begin()[2];
    without_keys(query, value, dtype, results);
    results[0] = with_history_of(key, std::move(results[0]));
    if (is_empty(value)) results[0] = with_history_of(value, std::move(results[0]));
    return;
  }
  const Scalar scalars[] = {Scalar(how.scale.value_or(inverse_root(width))), Scalar(how.softcap)};
  const Tensor* inputs[] = {&cast_inputs[0], &cast_inputs[1], &cast_inputs[2], or_null(cast_inputs[3]),
                            or_null(lengths)};
  apply(id, inputs, &attributes, results, scalars);
}

// `x` with the leading axes of `all`, to which it broadcasts, and its own last two axes.
Tensor with_leading(const Tensor& x, const SymDims& all) {
  SymDims dims = all;
  dims.push_back(size_at(x, x.rank() - 2));
  dims.push_back(size_at(x, x.rank() - 1));
  return identical(sizes(x), dims) ? x : tenon::expand(x, SizeList(dims));
}

// `x`, of rank 2 or more, with rank 4.
Tensor with_four_axes(const Tensor& x) {
  if (x.rank() == 4) return x;
  if (x.rank() > 4) return tenon::flatten(x, 0, x.rank() - 4);
  return x.rank() == 3 ? tenon::unsqueeze(x, 0) : tenon::unsqueeze(tenon::unsqueeze(x, 0), 0);
}

SymDims leading(const Tensor& x, int32_t count) {
  SymDims dims;
  for (int32_t axis = 0; axis < count; ++axis) dims.push_back(size_at(x, axis));
  return dims;
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias, const Tensor& lengths,
                 int64_t before, int64_t after, bool align_end, std::optional<double> scale, double softcap) {
  Tensor result;
  attend(OpId::attention, {&query, &key, &value, &bias, &lengths}, {before, after, align_end, scale, softcap},
         {&result, 1});
  return result;
}

std::tuple<Tensor, Tensor> attention_with_log_sum(const Tensor& query, const Tensor& key, const Tensor& value,
                                                  const Tensor& bias, const Tensor& lengths, int64_t before,
                                                  int64_t after, bool align_end, std::optional<double> scale,
                                                  double softcap) {
  Tensor results[2];
  attend(OpId::attention_with_log_sum, {&query, &key, &value, &bias, &lengths},
         {before, after, align_end, scale, softcap}, results);
  return {results[0], results[1]};
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, bool is_causal, std::optional<double> scale,
                                    bool enable_gqa) {
  constexpr std::string_view op = "scaled_dot_product_attention";
  require_defined(op, "query", query);
  require_defined(op, "key", key);
  require_defined(op, "value", value);
  if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2) {
    refuse(op, "query, key and value have ranks {}, {} and {}; they must be at least 2.", query.rank(), key.rank(),
           value.rank());
  }
  if (is_causal && attn_mask.defined()) refuse(op, "is_causal and attn_mask exclude each other.");
  const bool groups = enable_gqa && query.rank() > 2 && key.rank() == query.rank() && value.rank() == query.rank();
  // Batches broadcast; with grouped heads, heads do not.
  const int32_t kept = groups ? query.rank() - 3 : query.rank() - 2;
  SymDims batch = leading(query, kept);
  for (const Tensor* each : {&key, &value}) {
    const int32_t count = groups ? kept : each->rank() - 2;
    const SymDims other = leading(*each, count);
    if (identical(batch, other)) continue;
    const SymDims shapes[] = {batch, other};
    batch = value_or_throw(infer::broadcast<SymDim>(op, std::span<const SymDims>(shapes)));
  }
  const auto spread = [&](const Tensor& x) {
    SymDims dims = batch;
    if (groups) dims.push_back(size_at(x, x.rank() - 3));
    return with_four_axes(with_leading(x, dims));
  };
  const Tensor q = spread(query);
  Tensor mask = attn_mask;
  if (mask.defined() && mask.rank() > 4) {
    SymDims dims = batch;
    if (groups) dims.push_back(size_at(query, query.rank() - 3));
    mask = with_four_axes(with_leading(mask, dims));
  }
  const Tensor result =
      tenon::attention(q, spread(key), spread(value), mask, Tensor(), -1, is_causal ? 0 : -1, false, scale, 0);
  if (q.rank() == query.rank() && batch.rank() == kept) return result;
  SymDims dims = batch;
  if (groups) dims.push_back(size_at(query, query.rank() - 3));
  dims.push_back(size_at(query, query.rank() - 2));
  dims.push_back(size_at(value, value.rank() - 1));
  return dims.rank() == 4 ? result : tenon::reshape(result, SizeList(dims));
}

Tensor rotary_embedding(const Tensor& input, const Tensor& cos, const Tensor& sin, const Tensor& positions,
                        bool interleaved) {
  constexpr std::string_view op = "rotary_embedding";
  require_defined(op, "input", input);
  require_defined(op, "cos", cos);
  require_defined(op, "sin", sin);
  if (input.rank() != 4) refuse(op, "input has rank {}; it must be 4.", input.rank());
  if (cos.rank() < 1 || cos.rank() != sin.rank()) {
    refuse(op, "cos has rank {} and sin has rank {}; they must be equal, and at least 1.", cos.rank(), sin.rank());
  }
  const Tensor source = is_floating(input.dtype()) ? input : tenon::cast(input, DType::f32);
  const DType dtype = cos.dtype() == sin.dtype() && cos.dtype() == DType::f32 ? DType::f32 : source.dtype();
  const Tensor cosines = tenon::cast(cos, dtype);
  const Tensor sines = tenon::cast(sin, dtype);
  RotaryAttributes attributes{};
  attributes.rotary.mode = interleaved ? EP_ROTARY_INTERLEAVED : EP_ROTARY_HALVES;
  const Tensor places = index_or_none(op, "positions", positions);
  return apply(OpId::rotary_embedding, {&source, &cosines, &sines, or_null(places)}, &attributes);
}

}  // namespace tenon::functors
