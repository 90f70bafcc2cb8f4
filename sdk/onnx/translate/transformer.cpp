// Parts of transformers: attention, rotary embeddings, RMS norms and group norms.
#include "sdk/onnx/translate/transformer.h"

#include <cmath>
#include <limits>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Bool, [q, k] or [b, 1, q, k]: the keys that each query may read by position. Query 0 is at `offset`, or the last
// query is at the last key.
Tensor read_by_position(NodeContext& n, const Scores& s, int64_t offset) {
  const int64_t queries = s.query.dim(2), keys = s.key.dim(2);
  const Tensor columns = n.positions(keys);
  Tensor rows = unsqueeze(n.positions(queries), 1), lengths;
  if (s.lengths.defined()) lengths = reshape(cast(s.lengths, DType::i64), {-1, 1, 1, 1});
  if (!s.align_end) {
    rows = add(rows, Scalar(offset));
  } else {
    rows = lengths.defined() ? add(rows, sub(lengths, Scalar(queries))) : add(rows, Scalar(keys - queries));
  }
  const Tensor ahead = sub(columns, rows);
  Tensor read = lengths.defined() ? lt(columns, lengths) : ge(columns, Scalar(0));
  if (s.after >= 0) read = logical_and(read, le(ahead, Scalar(s.after)));
  if (s.before >= 0) read = logical_and(read, ge(ahead, Scalar(-s.before)));
  return read;
}

Tensor as_bias(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::boolean) return mask.defined() ? cast(mask, dtype) : mask;
  const Tensor zero = full({}, Scalar(0.0), dtype, mask.device()),
               never = full({}, Scalar(kNever), dtype, mask.device());
  return where(mask, zero, never);
}

// The scores at the stage that `mode` selects: 0 the products, 1 after the softcap, 2 with the bias too, 3 the
// probabilities.
Tensor visible_scores(NodeContext& n, const Scores& s, int64_t offset, int64_t mode) {
  const double root = std::sqrt(s.scale);
  Tensor key = s.key;
  const int64_t repeats = s.query.dim(1) / std::max<int64_t>(1, key.dim(1));
  if (repeats > 1) key = repeat_interleave(key, repeats, 1);
  Tensor scores = matmul(mul(s.query, Scalar(root)), mul(transpose(key, 2, 3), Scalar(root)));
  if (mode == 0) return scores;
  if (s.softcap > 0) scores = mul(tanh(mul(scores, Scalar(1 / s.softcap))), Scalar(s.softcap));
  if (mode == 1) return scores;
  Tensor bias = as_bias(read_by_position(n, s, offset), scores.dtype());
  if (s.bias.defined()) bias = add(bias, as_bias(s.bias, scores.dtype()));
  const Tensor biased = add(scores, bias);
  if (mode == 2) return biased;
  const Tensor wide = biased.dtype() == DType::f64 ? biased : cast(biased, DType::f32);
  return cast(where(eq(amax(bias, -1, true), Scalar(kNever)), Scalar(0.0), softmax(wide, -1)), scores.dtype());
}

// Extends the last axis of the mask to `keys`; the added keys are masked.
Tensor with_all_keys(const Tensor& mask, SymDim keys) {
  const SymDim own = size_at(mask, mask.rank() - 1);
  if (own == keys) return mask;
  SymDims missing = sizes(mask);
  missing[mask.rank() - 1] = keys - own;
  const Scalar out = mask.dtype() == DType::boolean ? Scalar(false) : Scalar(kNever);
  return concat({mask, full(SizeList(missing), out, mask.dtype(), mask.device())}, mask.rank() - 1);
}

std::string attention_why_not(const Node& node) {
  const auto mode = node.attributes.find("qk_matmul_output_mode");
  if (mode == node.attributes.end() || (mode->second.i >= 0 && mode->second.i <= 3)) return {};
  return fmt::format("its qk_matmul_output_mode is {}; 0 to 3 are known.", mode->second.i);
}

TensorList translate_attention(NodeContext& n) {
  const int32_t rank = n.rank(0);
  if (rank != n.rank(1) || rank != n.rank(2) || (rank != 3 && rank != 4))
    n.invalid(fmt::format("Q, K and V have ranks {}, {} and {}; all must be 3, or all 4", rank, n.rank(1), n.rank(2)));
  const Tensor new_key = headed(n, 1, "kv_num_heads"), new_value = headed(n, 2, "kv_num_heads");
  if (n.has(4) != n.has(5)) n.invalid("past_key and past_value must be given together");
  if (n.has(4) && n.has(6)) n.invalid("nonpad_kv_seqlen and past_key cannot both be given");
  const Tensor key = n.has(4) ? concat({n.input(4), new_key}, 2) : new_key;
  const Tensor value = n.has(5) ? concat({n.input(5), new_value}, 2) : new_value;
  Scores s;
  s.query = headed(n, 0, "q_num_heads");
  s.key = key;
  s.value = value;
  if (n.has(6)) s.lengths = n.within(6, 0, size_at(key, 2));
  s.scale = n.number("scale", 0.0);
  if (n.find("scale") == nullptr) s.scale = usual_scale(s.query);
  s.softcap = n.number("softcap", 0.0);
  s.before = n.integer("left_window_size", -1);
  s.after = n.integer("right_window_size", -1);
  if (s.before < -1 || s.after < -1)
    n.invalid(fmt::format("its windows are {} and {}; both must be at least -1", s.before, s.after));
  if (n.flag("is_causal", false)) s.after = s.after < 0 ? 0 : std::min<int64_t>(s.after, 0);
  if (n.has(3)) s.bias = with_all_keys(n.input(3), size_at(key, 2));
  if (s.bias.defined() && s.bias.dtype() != DType::boolean) s.bias = cast(s.bias, s.query.dtype());
  s.align_end = n.has(6);
  const bool positions = s.before >= 0 || s.after >= 0;
  int64_t offset = 0;
  if (n.has(4) && (positions || n.wants(3))) {
    offset = n.dims(4)[2];
    if (size_at(s.query, 2) == size_at(new_key, 2)) {
      s.align_end = true;
    } else if (positions) {
      const Tensor bias = as_bias(read_by_position(n, s, offset), s.query.dtype());
      s.bias = s.bias.defined() ? add(as_bias(s.bias, s.query.dtype()), bias) : bias;
      s.before = s.after = -1;
    }
  }
  const Tensor result = attended(s);
  TensorList results = {rank == 4 ? result : without_heads(result), key, value};
  if (n.wants(3)) results.push_back(visible_scores(n, s, offset, n.integer("qk_matmul_output_mode", 0)));
  return results;
}

TensorList rms_normalization(NodeContext& n) {
  const Tensor &x = n.input(0), &scale = n.input(1);
  const int64_t axis = n.axis(-1, x.rank());
  const SymDims dims = sizes(x);
  const SymDims inner(std::span<const SymDim>(dims.begin() + axis, dims.end()));
  const double epsilon = n.number("epsilon", 1e-5);
  const bool fits = x.dtype() == scale.dtype() && same_sizes(sizes(scale), inner);
  if (fits) return {rms_norm(x, SizeList(inner), scale, epsilon)};
  return {mul(cast(rms_norm(x, SizeList(inner), Tensor(), epsilon), scale.dtype()), scale)};
}

TensorList translate_rotary_embedding(NodeContext& n) {
  const Tensor& given = n.input(0);
  if (given.rank() != 3 && given.rank() != 4) n.invalid(fmt::format("X has rank {}; it must be 3 or 4", given.rank()));
  const Tensor x = headed(n, 0, "num_heads");
  const Tensor &cosines = n.input(1), &sines = n.input(2);
  const SymDim width = size_at(x, 3), part = n.integer("rotary_embedding_dim", 0);
  if (cosines.rank() < 2 || !(size_at(cosines, cosines.rank() - 1) * 2 == (part == 0 ? width : part)))
    n.invalid(fmt::format("cos_cache of shape {} must have half as many columns as the {} that are rotated",
                          sizes(cosines), part == 0 ? width : part));
  const bool interleaved = n.flag("interleaved", false);
  const Tensor result = n.has(3)
                            ? rotary_embedding(x, cosines, sines, n.input(3), interleaved)
                            : rotary_embedding(x, unsqueeze(cosines, 1), unsqueeze(sines, 1), Tensor(), interleaved);
  return {given.rank() == 4 ? result : without_heads(result)};
}

// Before version 21, scale and bias have a number per group.
TensorList group_normalization(NodeContext& n) {
  const int64_t groups = n.require("num_groups", Attribute::Kind::integer).i;
  const auto per_channel = [&](size_t i) {
    if (n.version() >= 21) return n.input(i);
    const int64_t channels = bound(n.sizes(0)[1], "GroupNormalization");
    return repeat_interleave(n.input(i), channels / groups, 0);
  };
  return {group_norm(n.input(0), groups, per_channel(1), per_channel(2), n.number("epsilon", 1e-5))};
}

constexpr Translator kTransformerRows[] = {
    {.op_type = "Attention", .since = 23, .translate = translate_attention, .why_not = attention_why_not},
    {.op_type = "GroupNormalization", .since = 18, .translate = group_normalization},
    {.op_type = "RMSNormalization", .since = 23, .translate = rms_normalization},
    {.op_type = "RotaryEmbedding", .since = 23, .translate = translate_rotary_embedding},
};

}  // namespace

Tensor attended(const Scores& s) {
  const Tensor result =
      attention(s.query, s.key, s.value, s.bias, s.lengths, s.before, s.after, s.align_end, s.scale, s.softcap);
  return cast(result, s.query.dtype());
}

void add_sink(NodeContext& n, const Tensor& sink, Scores* s) {
  const DType dtype = s->query.dtype();
  Tensor bias = as_bias(read_by_position(n, *s, 0), dtype);
  if (s->bias.defined()) bias = add(bias, as_bias(s->bias, dtype));
  const int64_t batches = s->query.dim(0), heads = s->query.dim(1), queries = s->query.dim(2);
  const Tensor whole = expand(bias, {batches, heads, queries, s->key.dim(2)});
  const Tensor column = expand(reshape(cast(sink, dtype), {1, heads, 1, 1}), {batches, heads, queries, 1});
  s->bias = concat({whole, column}, 3);
  for (Tensor* x : {&s->key, &s->value}) *x = pad(*x, {0, 0, 0, 1});
  s->lengths = Tensor();
  s->before = s->after = -1;
  s->align_end = false;
}

double usual_scale(const Tensor& query) { return 1 / std::sqrt(static_cast<double>(query.dim(-1))); }

Tensor headed(NodeContext& n, size_t i, std::string_view attribute) {
  const Tensor& x = n.input(i);
  const int64_t heads = n.integer(attribute, 0);
  if (x.rank() != 4) return with_heads(n, x, heads);
  if (heads != 0 && !expect(size_at(x, 1) == heads))
    n.invalid(
        fmt::format("its attribute '{}' is {}, but its input {} has the shape {}", attribute, heads, i, sizes(x)));
  return x;
}

Tensor with_heads(NodeContext& n, const Tensor& x, int64_t heads) {
  const SymDims dims = sizes(x);
  if (dims.rank() != 3) n.invalid(fmt::format("the shape {} cannot be split into heads; its rank must be 3", dims));
  if (heads < 1) n.invalid("it does not state its number of heads");
  const int64_t width = bound(dims[2], "heads");
  if (width % heads != 0) n.invalid(fmt::format("{} heads do not fit rows of {}", heads, width));
  return transpose(reshape(x, SizeList{dims[0], dims[1], heads, width / heads}), 1, 2);
}

Tensor without_heads(const Tensor& x) {
  const SymDims dims = sizes(x);
  return reshape(transpose(x, 1, 2), SizeList{dims[0], dims[2], dims[1] * dims[3]});
}

std::span<const Translator> transformer_translators() { return kTransformerRows; }

}  // namespace tenon::onnx
