// Decomposes attention and rotary_embedding. Materialises the scores of all queries at once.
#include "core/ops/decompose/attention.h"

#include <limits>

#include "core/ops/attributes.h"
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "core/ops/size_list.h"
#include "core/ops/sized_ops.h"
#include "core/ops/sizes.h"

namespace tenon::ops {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

Tensor wide(const Tensor& x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }

// Which keys are used, [.., q, k]; undefined if all are.
Tensor taken(const Tensor& query, const Tensor& key, const Tensor& lengths, const ep_attention_attributes& at) {
  if (!lengths.defined() && at.before < 0 && at.after < 0) return {};
  const SymDim queries = size_at(query, 2);
  const SymDim keys = size_at(key, 2);
  const Tensor column = sized::positions(keys, query.device());
  Tensor row = unsqueeze(sized::positions(queries, query.device()), 1);
  Tensor result;
  const auto require = [&](const Tensor& condition) {
    result = result.defined() ? logical_and(result, condition) : condition;
  };
  if (lengths.defined()) {
    const Tensor count = reshape(cast(lengths, DType::i64), SizeList{size_at(lengths, 0), 1, 1, 1, 1});
    require(lt(column, count));
    if (at.align == EP_ATTENTION_END)
      row = add(row, sub(clamp(count, 0, bound(keys, "attention")), Scalar(bound(queries, "attention"))));
  } else if (at.align == EP_ATTENTION_END) {
    row = add(row, Scalar(bound(keys - queries, "attention")));
  }
  if (at.before >= 0) require(ge(column, sub(row, Scalar(at.before))));
  if (at.after >= 0) require(le(column, add(row, Scalar(at.after))));
  return result;
}

void store(const OpCall& call, size_t i, const Tensor& result, DType dtype, const Dims& dims) {
  const Tensor converted = cast(reshape(result, dims), dtype);
  if (call.outputs[i].defined()) {
    copy_(call.outputs[i], converted);
  } else {
    call.outputs[i] = converted;
  }
}

// Computes the first `results` results of attention.
void decompose(const OpCall& call, size_t results) {
  const Tensor& query = input(call, 0);
  const ep_attention_attributes& at = call.attributes_as<AttentionAttributes>().attention;
  const AttentionParts parts =
      attention_parts(query, input(call, 1), input(call, 2), optional(call, 3), optional(call, 4), at,
                      call.scalars[0].to_double(), call.scalars[1].to_double());
  Dims dims = query.dims();
  dims[3] = input(call, 2).dim(3);
  if (!parts.masked && results == 1) {
    return store(call, 0, matmul(softmax(parts.scores, -1), parts.value), query.dtype(), dims);
  }
  const AttentionPowers all = attention_powers(parts.scores);
  const Tensor total = sum(all.powers, 4, true);
  const Tensor divisor = where(eq(total, Scalar(0)), Scalar(1), total);
  store(call, 0, div(matmul(all.powers, parts.value), divisor), query.dtype(), dims);
  if (results == 1) return;
  dims[3] = 1;
  store(call, 1, add(all.most, log(total)), total.dtype(), dims);
}

}  // namespace

AttentionParts attention_parts(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                               const Tensor& lengths, const ep_attention_attributes& at, double scale, double softcap) {
  const SymDims q = sizes(query);
  const SymDim groups = size_at(key, 1);
  const SymDim ratio = floor_div(q[1], groups);
  AttentionParts parts;
  parts.query = reshape(wide(query), SizeList{q[0], groups, ratio, q[2], q[3]});
  parts.key = unsqueeze(wide(key), 2);
  parts.value = unsqueeze(wide(value), 2);
  parts.scores = matmul(mul(parts.query, Scalar(scale)), transpose(parts.key, -2, -1));
  if (softcap > 0) {
    parts.bent = tanh(div(parts.scores, Scalar(softcap)));
    parts.scores = mul(parts.bent, Scalar(softcap));
  }
  if (bias.defined()) {
    Tensor spread = bias;
    while (spread.rank() < 4) spread = unsqueeze(spread, 0);
    const SymDims dims = sizes(spread);
    spread = dims[1] == 1 ? unsqueeze(spread, 2) : reshape(spread, SizeList{dims[0], groups, ratio, dims[2], dims[3]});
    parts.masked = true;
    parts.scores =
        bias.dtype() == DType::boolean ? where(spread, parts.scores, Scalar(kNone)) : add(parts.scores, wide(spread));
  }
  const Tensor takes = taken(query, key, lengths, at);
  if (!takes.defined()) return parts;
  parts.masked = true;
  parts.scores = where(takes, parts.scores, Scalar(kNone));
  return parts;
}

AttentionPowers attention_powers(const Tensor& scores) {
  const Tensor greatest = amax(scores, 4, true);
  const Tensor most = where(eq(greatest, Scalar(kNone)), Scalar(0), greatest);
  return {exp(sub(scores, most)), most};
}

void decompose_attention(const OpCall& call) { decompose(call, 1); }
void decompose_attention_with_log_sum(const OpCall& call) { decompose(call, 2); }

void decompose_rotary_embedding(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const Tensor positions = optional(call, 3);
  const bool halves = call.attributes_as<RotaryAttributes>().rotary.mode == EP_ROTARY_HALVES;
  const auto angles = [&](size_t i) {
    const Tensor table = wide(input(call, i));
    return positions.defined() ? unsqueeze(gather_slices(table, 0, positions), 1) : table;
  };
  const Tensor cosines = angles(1);
  const Tensor sines = angles(2);
  const int64_t pairs = cosines.dim(-1);
  const Tensor turned = wide(narrow(x, 3, 0, 2 * pairs));
  const Tensor by_pair = halves ? turned : reshape(turned, Dims{x.dim(0), x.dim(1), x.dim(2), pairs, 2});
  const Tensor first = halves ? narrow(turned, 3, 0, pairs) : select(by_pair, 4, 0);
  const Tensor second = halves ? narrow(turned, 3, pairs, pairs) : select(by_pair, 4, 1);
  const Tensor a = sub(mul(first, cosines), mul(second, sines));
  const Tensor b = add(mul(first, sines), mul(second, cosines));
  const Tensor whole =
      halves ? concat({a, b}, 3)
             : reshape(concat({unsqueeze(a, 4), unsqueeze(b, 4)}, 4), Dims{x.dim(0), x.dim(1), x.dim(2), 2 * pairs});
  const Tensor result = cast(whole, x.dtype());
  if (2 * pairs == x.dim(3)) return store(call, result);
  store(call, concat({result, narrow(x, 3, 2 * pairs, x.dim(3) - 2 * pairs)}, 3));
}

}  // namespace tenon::ops
