// Attention and what stands around it as ONNX Runtime writes it: operators of com.microsoft.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/transformer.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

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

// The mask in input `i` as a bias: keys that it leaves out get the node's mask_filter_value. It has a length per batch,
// or a number per key [b, k] or [b, q, k], of which 0 leaves out.
Tensor mask_as_bias(NodeContext& n, size_t i, const Tensor& key, DType dtype) {
  const Tensor& mask = n.input(i);
  const SymDims dims = sizes(mask);
  Tensor part;
  if (mask.rank() == 1) {
    if (!(dims[0] == size_at(key, 0)))
      n.unsupported(
          fmt::format("its mask has shape {}; of masks of rank 1, one length for each of the {} batches is "
                      "translated",
                      dims, size_at(key, 0)));
    part = lt(n.positions(size_at(key, 2)), reshape(cast(mask, DType::i64), {-1, 1, 1, 1}));
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

// Fills what MultiHeadAttention and Attention have in common. `mask` and `bias` are numbers of inputs.
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
  return is_given(node.outputs, 3) ? "its products of queries and keys are wanted." : std::string();
}

TensorList multi_head_attention(NodeContext& n) {
  const int64_t heads = n.require("num_heads", Attribute::Kind::integer).i;
  const Tensor& query = n.input(0);
  const bool packed = query.rank() == 5, packed_keys = !packed && n.has(1) && n.rank(1) == 5;
  const bool ready = !packed && n.has(1) && n.rank(1) == 4;
  if (!packed && query.rank() != 3) n.invalid(fmt::format("query has shape {}; its rank must be 3 or 5", sizes(query)));
  if (n.has(3) && (packed || packed_keys || ready))
    n.unsupported("it has a bias beside packed queries, keys or values");
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
  if (n.has(6) != n.has(7)) n.invalid("past_key and past_value come together");
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

// Attention of queries, keys and values that lie beside each other.
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

// The product of quantised input and weights is real.
TensorList quantised_attention(NodeContext& n) {
  if (n.dims(1)[1] == 0) n.invalid(fmt::format("its weights have the shape {}", n.sizes(1)));
  const Tensor merged = quantized_matmul(n.input(0), n.input(3), n.optional(6), n.input(1), n.input(4), n.optional(7),
                                         n.input(2), {}, {}, 0, n.dtype(2));
  return attended_parts(n, merged, std::vector<int64_t>(3, n.dims(1)[1] / 3), {5, 8, kNoInput});
}

std::string group_query_why_not(const Node& node) {
  if (is_given(node.inputs, 11)) return "it has a head_sink.";
  if (is_given(node.outputs, 3)) return "its products of queries and keys are wanted.";
  return set_to_other_than_zero(node, {"smooth_softmax", "qk_output"});
}

// `fresh` [b, g, s, w] behind the first `before` [b] rows of `past`; `total` rows in all, 0 behind those.
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

// Each batch has its own number of keys: seqlens_k + 1. Query i is at position i + keys - queries; in a first call,
// which has no keys but those of its own queries, at i.
TensorList group_query_attention(NodeContext& n) {
  const int64_t heads = n.require("num_heads", Attribute::Kind::integer).i;
  const int64_t groups = n.require("kv_num_heads", Attribute::Kind::integer).i;
  if (n.has(1) != n.has(2) || n.has(3) != n.has(4)) n.invalid("keys and values come together");
  Tensor query = n.input(0), key = n.optional(1), value = n.optional(2);
  if (!n.has(1)) {
    const int64_t width = query.dim(2) / (heads + 2 * groups);
    if (width < 1 || width * (heads + 2 * groups) != query.dim(2))
      n.invalid(fmt::format("{} columns are not of {} heads", query.dim(2), heads + 2 * groups));
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
  return {without_heads(attended(s)), present_key, present_value};
}

std::string rotary_why_not(const Node& node) {
  const auto scale = node.attributes.find("scale");
  if (scale != node.attributes.end() && scale->second.f != 1.0f)
    return fmt::format("its scale is {}; 1 is translated.", scale->second.f);
  return set_to_other_than_zero(node, {"is_packed_batching"});
}

// The positions are given, or one number says where the first is.
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

TensorList embed_layer_normalization(NodeContext& n) {
  const Tensor& ids = n.input(0);
  if (ids.rank() != 2) n.invalid(fmt::format("input_ids has shape {}; its rank must be 2", sizes(ids)));
  Tensor sum = gather_slices(n.input(2), 0, ids);
  const Tensor positions = n.has(8) ? n.input(8) : n.positions(size_at(ids, 1));
  sum = add(sum, gather_slices(n.input(3), 0, positions));
  if (n.has(4)) {
    if (!n.has(1)) n.invalid("it has segments but no segment_ids");
    sum = add(sum, gather_slices(n.input(4), 0, n.input(1)));
  }
  const SizeList width{size_at(sum, 2)};
  const Tensor y = layer_norm(sum, width, n.input(5), n.input(6), n.number("epsilon", 1e-12));
  Tensor ends;
  if (n.wants(1)) {
    ends = n.has(7) ? cast(tenon::sum(cast(n.input(7), DType::i64), {1}), DType::i32)
                    : full(SizeList{size_at(ids, 0)}, Scalar(0), DType::i32, n.device());
  }
  return {y, ends, sum};
}

std::string bits_why_not(const Node& node) {
  if (is_given(node.inputs, 4)) return "its columns are in another order (g_idx).";
  const auto bits = node.attributes.find("bits");
  const int64_t count = bits == node.attributes.end() ? 4 : bits->second.i;
  return count == 2 || count == 4 || count == 8 ? std::string() : fmt::format("its weights have {} bits.", count);
}

// The numbers of `bits` bits in the last axis of u8, the low ones first.
Tensor unpacked(const Tensor& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  TensorList parts;
  for (int64_t shift = 0; shift < 8; shift += bits)
    parts.push_back(bitwise_and(bitwise_right_shift(bytes, Scalar(shift)), Scalar((1 << bits) - 1)));
  return flatten(stack(parts, -1), -2, -1);
}

// [n, k] weights as the matrix [k, n] that quantized_matmul takes, of numbers less `offset`.
Tensor as_matrix(const Tensor& numbers, int64_t offset, DType dtype) {
  const Tensor turned = contiguous(t(numbers));
  return offset == 0 ? cast(turned, dtype) : cast(sub(cast(turned, DType::i32), Scalar(offset)), dtype);
}

// The same product on numbers: those without a zero point lie around the middle, and become signed.
TensorList matmul_numbers(NodeContext& n, const Tensor& weights, int64_t bits, int64_t block) {
  const int64_t rows = weights.dim(0), blocks = (weights.dim(1) + block - 1) / block, middle = 1 << (bits - 1);
  const DType dtype = n.has(3) ? bits == 4 ? DType::u4 : DType::u8 : bits == 4 ? DType::i4 : DType::i8;
  Tensor zero;
  if (n.has(3)) {
    const Tensor bytes = reshape(n.input(3), {rows, (blocks * bits + 7) / 8});
    zero = as_matrix(narrow(unpacked(bytes, bits), 1, 0, blocks), 0, dtype);
  }
  const Tensor scale = contiguous(t(reshape(n.input(2), {rows, blocks})));
  return {quantized_matmul(n.input(0), {}, {}, as_matrix(weights, n.has(3) ? 0 : middle, dtype), scale, zero,
                           n.optional(5), {}, {}, block)};
}

// a by the transpose of [n, k] weights, each block of which has a scale and a zero point.
TensorList matmul_bits(NodeContext& n) {
  const int64_t bits = n.integer("bits", 4), block = n.require("block_size", Attribute::Kind::integer).i;
  const int64_t rows = n.require("N", Attribute::Kind::integer).i, columns = n.require("K", Attribute::Kind::integer).i;
  const int64_t blocks = (columns + block - 1) / block;
  if (n.dtype(1) != DType::u8)
    n.unsupported(fmt::format("its weights are {}; u8 is translated", dtype_name(n.dtype(1))));
  const Tensor weights = reshape(unpacked(n.input(1), bits), {rows, blocks, block});
  const bool plain_zero = !n.has(3) || n.dtype(3) == DType::u8;
  if (bits >= 4 && block % 8 == 0 && n.dtype(0) == DType::f32 && n.rank(0) >= 2 && plain_zero)
    return matmul_numbers(n, narrow(reshape(weights, {rows, blocks * block}), 1, 0, columns), bits, block);
  const DType dtype = n.dtype(0);
  Tensor centred;
  if (!n.has(3)) {
    centred = sub(cast(weights, DType::f32), Scalar(static_cast<double>(1 << (bits - 1))));
  } else {
    Tensor zero = n.input(3);
    if (zero.dtype() == DType::u8) {
      const int64_t bytes = (blocks * bits + 7) / 8;
      zero = narrow(unpacked(reshape(zero, {rows, bytes}), bits), 1, 0, blocks);
    }
    centred = sub(cast(weights, DType::f32), cast(reshape(zero, {rows, blocks, 1}), DType::f32));
  }
  const Tensor real = mul(centred, cast(reshape(n.input(2), {rows, blocks, 1}), DType::f32));
  const Tensor whole = narrow(reshape(real, {rows, blocks * block}), 1, 0, columns);
  const Tensor y = matmul(n.input(0), cast(t(whole), dtype));
  return {n.has(5) ? add(y, n.input(5)) : y};
}

constexpr Translator kRows[] = {
    of_domain(kDomain, "Attention", 1, merged_attention, attention_why_not),
    of_domain(kDomain, "EmbedLayerNormalization", 1, embed_layer_normalization),
    of_domain(kDomain, "GroupQueryAttention", 1, group_query_attention, group_query_why_not),
    of_domain(kDomain, "MatMulNBits", 1, matmul_bits, bits_why_not),
    of_domain(kDomain, "MultiHeadAttention", 1, multi_head_attention, multi_head_why_not),
    of_domain(kDomain, "QAttention", 1, quantised_attention, attention_why_not),
    of_domain(kDomain, "RotaryEmbedding", 1, rotary, rotary_why_not),
};

}  // namespace

std::span<const Translator> microsoft_attention_translators() { return kRows; }

}  // namespace tenon::onnx
