// Attention and related operators of com.microsoft, as ONNX Runtime writes them.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/transformer.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

template <size_t Count>
std::string set_to_other_than_zero(const Node& node, const char* const (&names)[Count]) {
  for (const char* name : names) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end() && found->second.i != 0)
      return fmt::format("its attribute '{}' is {}; 0 is translated.", name, found->second.i);
  }
  return {};
}

bool is_given(const std::vector<int32_t>& values, size_t i) { return i < values.size() && values[i] >= 0; }

// The mask in input `i` as a bias that gives masked keys the node's mask_filter_value. The mask has the end of the keys
// per batch, optionally followed by all beginnings; or a number per key [b, k] or [b, q, k], where 0 masks.
Tensor mask_as_bias(NodeContext& n, size_t i, const Tensor& key, DType dtype) {
  const Tensor& mask = n.input(i);
  const SymDims dims = sizes(mask);
  Tensor part;
  if (mask.rank() == 1) {
    const SymDim batches = size_at(key, 0);
    const auto ends = static_cast<bool>(dims[0] == batches), both = static_cast<bool>(dims[0] == batches * 2);
    if (!ends && !both)
      n.unsupported(fmt::format("its mask has shape {}; one or two numbers for each of the {} batches are translated",
                                dims, batches));
    const Tensor numbers = reshape(cast(mask, DType::i64), SizeList{both ? 2 : 1, batches, 1, 1, 1});
    const Tensor places = n.positions(size_at(key, 2));
    part = lt(places, select(numbers, 0, 0));
    if (both) part = logical_and(part, ge(places, select(numbers, 0, 1)));
  } else if (mask.rank() == 2) {
    part = reshape(ne(mask, Scalar(0)), SizeList{dims[0], 1, 1, dims[1]});
  } else if (mask.rank() == 3) {
    part = unsqueeze(ne(mask, Scalar(0)), 1);
  } else {
    n.unsupported(fmt::format("its mask has shape {}; masks of rank 1 to 3 are translated", dims));
  }
  const double filter = n.number("mask_filter_value", -10000.0);
  return where(part, full({}, Scalar(0.0), dtype, mask.device()), full({}, Scalar(filter), dtype, mask.device()));
}

// Fills the members that MultiHeadAttention and Attention share. `mask` and `bias` are numbers of inputs.
void read_scores(NodeContext& n, size_t mask, size_t bias, Scores* s) {
  const double scale = n.number("scale", 0.0);
  s->scale = scale == 0.0 ? usual_scale(s->query) : scale;
  if (n.has(mask)) s->bias = mask_as_bias(n, mask, s->key, s->query.dtype());
  if (n.has(bias)) s->bias = s->bias.defined() ? add(s->bias, n.input(bias)) : n.input(bias);
  s->align_end = true;
  if (n.flag("unidirectional", false)) s->after = 0;
}

// Part `i` of [b, s, heads, parts, w] as [b, heads, s, w].
Tensor packed_part(const Tensor& x, int64_t i) { return transpose(select(x, 3, i), 1, 2); }

std::string multi_head_why_not(const Node& node) {
  if (is_given(node.inputs, 8) || is_given(node.inputs, 9)) return "it keeps keys and values in a shared buffer.";
  return is_given(node.outputs, 3) ? "its output of query-key products is used." : std::string();
}

TensorList multi_head_attention(NodeContext& n) {
  const int64_t heads = n.require("num_heads", Attribute::Kind::integer).i;
  const Tensor& query = n.input(0);
  const bool packed = query.rank() == 5, packed_keys = !packed && n.has(1) && n.rank(1) == 5;
  const bool ready = !packed && n.has(1) && n.rank(1) == 4;
  if (!packed && query.rank() != 3) n.invalid(fmt::format("query has shape {}; its rank must be 3 or 5", sizes(query)));
  if (n.has(3) && (packed || packed_keys || ready))
    n.unsupported("it has both a bias and packed queries, keys or values");
  if (!packed && !n.has(1)) n.invalid("it has no keys");
  if (!packed && !packed_keys && (!n.has(2) || n.rank(2) != n.rank(1))) n.invalid("its values do not fit its keys");
  Scores s;
  if (packed) {
    s.query = packed_part(query, 0);
    s.key = packed_part(query, 1);
    s.value = packed_part(query, 2);
  } else {
    int64_t begin = 0;
    const auto biased = [&](const Tensor& x) {
      if (!n.has(3)) return x;
      const int64_t width = x.dim(-1);
      const Tensor sum = add(x, narrow(n.input(3), 0, begin, width));
      begin += width;
      return sum;
    };
    s.query = with_heads(n, biased(query), heads);
    s.key = packed_keys ? packed_part(n.input(1), 0) : ready ? n.input(1) : with_heads(n, biased(n.input(1)), heads);
    s.value = packed_keys ? packed_part(n.input(1), 1) : ready ? n.input(2) : with_heads(n, biased(n.input(2)), heads);
    if (n.has(3) && n.dims(3)[0] != begin)
      n.invalid(
          fmt::format("its bias has {} numbers, but queries, keys and values have {} columns", n.dims(3)[0], begin));
  }
  if (n.has(6) != n.has(7)) n.invalid("past_key and past_value must be given together");
  if (n.has(6)) {
    s.key = concat({n.input(6), s.key}, 2);
    s.value = concat({n.input(7), s.value}, 2);
  }
  read_scores(n, 4, 5, &s);
  return {without_heads(attended(s)), s.key, s.value};
}

std::string attention_why_not(const Node& node) {
  return set_to_other_than_zero(node, {"do_rotary", "past_present_share_buffer"});
}

constexpr size_t kNoInput = 99;

// Numbers of inputs.
struct AttentionInputs {
  size_t mask, past, bias;
};

// Attention of queries, keys and values that are stored together in one tensor.
TensorList attended_parts(NodeContext& n, const Tensor& merged, const std::vector<int64_t>& parts,
                          const AttentionInputs& at) {
  const int64_t heads = n.require("num_heads", Attribute::Kind::integer).i;
  Scores s;
  s.query = with_heads(n, narrow(merged, 2, 0, parts[0]), heads);
  s.key = with_heads(n, narrow(merged, 2, parts[0], parts[1]), heads);
  s.value = with_heads(n, narrow(merged, 2, parts[0] + parts[1], parts[2]), heads);
  if (n.has(at.past)) {
    s.key = concat({select(n.input(at.past), 0, 0), s.key}, 2);
    s.value = concat({select(n.input(at.past), 0, 1), s.value}, 2);
  }
  read_scores(n, at.mask, at.bias, &s);
  return {without_heads(attended(s)), n.wants(1) ? stack({s.key, s.value}, 0) : Tensor()};
}

TensorList merged_attention(NodeContext& n) {
  const int64_t width = n.dims(1)[1];
  std::vector<int64_t> parts = n.integers("qkv_hidden_sizes").value_or(std::vector<int64_t>(3, width / 3));
  const auto bad = [&](int64_t part) { return part < 1 || part > width; };
  if (parts.size() != 3 || std::any_of(parts.begin(), parts.end(), bad) || parts[0] + parts[1] + parts[2] != width)
    n.invalid(fmt::format("the sizes of queries, keys and values do not fit {} columns of weights", width));
  Tensor merged = matmul(n.input(0), n.input(1));
  if (n.has(2)) merged = add(merged, n.input(2));
  return attended_parts(n, merged, parts, {3, 4, 5});
}

// Multiplies the quantised input and weights; the product is real.
TensorList quantised_attention(NodeContext& n) {
  if (n.dims(1)[1] == 0)
    n.invalid(fmt::format("its weights have the shape {}; at least one column is needed", n.sizes(1)));
  const Tensor merged = quantized_matmul(n.input(0), n.input(3), n.optional(6), n.input(1), n.input(4), n.optional(7),
                                         n.input(2), {}, {}, 0, n.dtype(2));
  return attended_parts(n, merged, std::vector<int64_t>(3, n.dims(1)[1] / 3), {5, 8, kNoInput});
}

std::string group_query_why_not(const Node& node) {
  if (is_given(node.inputs, 12) || is_given(node.inputs, 13)) return "its keys and values in the cache are quantised.";
  if (is_given(node.inputs, 14) || is_given(node.inputs, 15)) return "it normalises its queries or keys.";
  if (is_given(node.inputs, 16)) return "it has query_seqlens.";
  if (is_given(node.outputs, 3)) return "its output of query-key products is used.";
  const auto causal = node.attributes.find("causal");
  if (causal != node.attributes.end() && causal->second.i != 1) return "its queries also read later keys.";
  return set_to_other_than_zero(node, {"qk_output", "sliding_window_cache"});
}

// Writes `fresh` [b, g, s, w] after the first `before` [b] rows of `past`. The result has `total` rows; the rest are 0.
Tensor appended(NodeContext& n, const Tensor& past, const Tensor& fresh, const Tensor& before, int64_t total) {
  const int64_t held = past.defined() ? past.dim(2) : 0, more = fresh.dim(2), batches = fresh.dim(0);
  const Tensor all = held == 0 ? fresh : concat({past, fresh}, 2);
  const Tensor places = n.positions(total), from = reshape(before, {batches, 1});
  const Tensor new_places = clamp(add(sub(places, from), Scalar(held)), Scalar(0), Scalar(held + more - 1));
  const Tensor rows = where(lt(places, from), places, new_places);  // [b, total]
  const Tensor index = reshape(rows, {batches, 1, total, 1});
  const Tensor taken = gather(all, 2, contiguous(expand(index, {batches, fresh.dim(1), total, fresh.dim(3)})));
  const Tensor there = lt(places, add(from, Scalar(more)));
  return where(reshape(there, {batches, 1, total, 1}), taken, Scalar(0.0));
}

// Each batch has its own number of keys: seqlens_k + 1. Query i is at position i + keys - queries. In a first call,
// where all keys come from its own queries, it is at position i.
TensorList group_query_attention(NodeContext& n) {
  const int64_t heads = n.require("num_heads", Attribute::Kind::integer).i;
  const int64_t groups = n.require("kv_num_heads", Attribute::Kind::integer).i;
  if (n.has(1) != n.has(2) || n.has(3) != n.has(4)) n.invalid("keys and values must be given together");
  Tensor query = n.input(0), key = n.optional(1), value = n.optional(2);
  if (!n.has(1)) {
    const int64_t width = query.dim(2) / (heads + 2 * groups);
    if (width < 1 || width * (heads + 2 * groups) != query.dim(2))
      n.invalid(fmt::format("{} columns cannot be split into {} heads", query.dim(2), heads + 2 * groups));
    key = narrow(query, 2, heads * width, groups * width);
    value = narrow(query, 2, (heads + groups) * width, groups * width);
    query = narrow(query, 2, 0, heads * width);
  }
  Scores s;
  s.query = with_heads(n, query, heads);
  s.key = with_heads(n, key, groups);
  s.value = with_heads(n, value, groups);
  const int64_t batches = s.query.dim(0), queries = s.query.dim(2), total = n.scalar(6).to_int();
  const int64_t held = n.has(3) ? n.dims(3)[2] : 0;
  if (n.input(5).elements() != batches || total < queries || total > held + queries)
    n.invalid(fmt::format("{} keys in all do not fit {} past and {} new ones", total, held, queries));
  const Tensor keys = add(reshape(n.within(5, 0, total - 1), {batches}), Scalar(1)).to(n.device());
  const bool first = total == queries;
  const Tensor before = first ? mul(keys, Scalar(0)) : sub(keys, Scalar(queries));
  if (n.flag("do_rotary", false)) {
    const Tensor positions = n.has(9) ? n.input(9) : add(n.positions(queries), reshape(before, {batches, 1}));
    const bool interleaved = n.flag("rotary_interleaved", false);
    s.query = rotary_embedding(s.query, n.input(7), n.input(8), contiguous(positions), interleaved);
    s.key = rotary_embedding(s.key, n.input(7), n.input(8), contiguous(positions), interleaved);
  }
  const int64_t kept = std::max(held, total);
  s.key = appended(n, n.optional(3), s.key, before, kept);
  s.value = appended(n, n.optional(4), s.value, before, kept);
  const Tensor present_key = s.key, present_value = s.value;
  s.key = narrow(s.key, 2, 0, total);
  s.value = narrow(s.value, 2, 0, total);
  s.lengths = keys;
  s.align_end = !first;
  s.after = 0;
  const int64_t window = n.integer("local_window_size", -1);
  s.before = window < 0 ? -1 : std::max<int64_t>(0, window - 1);
  const double scale = n.number("scale", 0.0);
  s.scale = scale == 0.0 ? usual_scale(s.query) : scale;
  s.softcap = n.number("softcap", 0.0);
  s.bias = n.optional(10);
  if (n.has(11)) {
    add_sink(n, n.input(11), &s);
  } else if (n.flag("smooth_softmax", false)) {
    add_sink(n, full({heads}, Scalar(0.0), s.query.dtype(), n.device()), &s);
  }
  return {without_heads(attended(s)), present_key, present_value};
}

std::string rotary_why_not(const Node& node) {
  const auto scale = node.attributes.find("scale");
  if (scale != node.attributes.end() && scale->second.f != 1.0f)
    return fmt::format("its scale is {}; 1 is translated.", scale->second.f);
  return set_to_other_than_zero(node, {"is_packed_batching"});
}

// The input has all positions, or only the first one.
TensorList rotary(NodeContext& n) {
  const Tensor& given = n.input(0);
  if (given.rank() != 3 && given.rank() != 4)
    n.invalid(fmt::format("its input has rank {}; it must be 3 or 4", given.rank()));
  const int64_t turned_columns = n.integer("rotary_embedding_dim", 0);
  if (turned_columns != 0 && turned_columns != 2 * n.dims(2).back())
    n.invalid(fmt::format("its attribute 'rotary_embedding_dim' is {}, but its cos_cache has the shape {}",
                          turned_columns, n.dims(2)));
  int64_t heads = n.integer("num_heads", 0);
  if (heads == 0 && given.rank() == 3) heads = given.dim(2) / std::max<int64_t>(1, 2 * n.dims(2).back());
  const Tensor x = given.rank() == 4 ? headed(n, 0, "num_heads") : with_heads(n, given, heads);
  Tensor positions = n.input(1);
  if (positions.rank() == 1) {
    const Tensor row = add(n.positions(size_at(x, 2)), positions);
    positions = expand(unsqueeze(row, 0), SizeList{size_at(x, 0), size_at(x, 2)});
  }
  const Tensor turned =
      rotary_embedding(x, n.input(2), n.input(3), contiguous(positions), n.flag("interleaved", false));
  return {given.rank() == 4 ? turned : without_heads(turned)};
}

// The normalised sum of the embeddings of words, positions and, if `segments` is defined, segments.
TensorList embedded(NodeContext& n, const Tensor& words, const Tensor& positions, const Tensor& segments,
                    const Tensor& gamma, const Tensor& beta, size_t mask, const Tensor& places) {
  const Tensor& ids = n.input(0);
  if (ids.rank() != 2) n.invalid(fmt::format("input_ids has shape {}; its rank must be 2", sizes(ids)));
  Tensor sum = gather_slices(words, 0, ids);
  sum = add(sum, gather_slices(positions, 0, places.defined() ? places : n.positions(size_at(ids, 1))));
  if (segments.defined()) {
    if (!n.has(1)) n.invalid("it has segments but no segment_ids");
    sum = add(sum, gather_slices(segments, 0, n.input(1)));
  }
  const SizeList width{size_at(sum, 2)};
  const Tensor y = layer_norm(sum, width, gamma, beta, n.number("epsilon", 1e-12));
  Tensor ends;
  if (n.wants(1)) {
    ends = n.has(mask) ? cast(tenon::sum(cast(n.input(mask), DType::i64), {1}), DType::i32)
                       : full(SizeList{size_at(ids, 0)}, Scalar(0), DType::i32, n.device());
  }
  return {y, ends, sum};
}

TensorList embed_layer_normalization(NodeContext& n) {
  return embedded(n, n.input(2), n.input(3), n.optional(4), n.input(5), n.input(6), 7, n.optional(8));
}

// The scales of the five tables are inputs 8 to 12, their zero points inputs 13 to 17.
TensorList quantised_embed_layer_normalization(NodeContext& n) {
  const auto real = [&](size_t i) {
    return n.has(i) ? dequantize_linear(n.input(i), n.input(i + 6), n.optional(i + 11), -1) : Tensor();
  };
  return embedded(n, real(2), real(3), real(4), real(5), real(6), 7, Tensor());
}

constexpr Translator kMicrosoftAttentionRows[] = {
    {.domain = kMicrosoft,
     .op_type = "Attention",
     .since = 1,
     .translate = merged_attention,
     .why_not = attention_why_not},
    {.domain = kMicrosoft, .op_type = "EmbedLayerNormalization", .since = 1, .translate = embed_layer_normalization},
    {.domain = kMicrosoft,
     .op_type = "GroupQueryAttention",
     .since = 1,
     .translate = group_query_attention,
     .why_not = group_query_why_not},
    {.domain = kMicrosoft,
     .op_type = "MultiHeadAttention",
     .since = 1,
     .translate = multi_head_attention,
     .why_not = multi_head_why_not},
    {.domain = kMicrosoft,
     .op_type = "QAttention",
     .since = 1,
     .translate = quantised_attention,
     .why_not = attention_why_not},
    {.domain = kMicrosoft,
     .op_type = "QEmbedLayerNormalization",
     .since = 1,
     .translate = quantised_embed_layer_normalization},
    {.domain = kMicrosoft, .op_type = "RotaryEmbedding", .since = 1, .translate = rotary, .why_not = rotary_why_not},
};

}  // namespace

std::span<const Translator> microsoft_attention_translators() { return kMicrosoftAttentionRows; }

}  // namespace tenon::onnx
