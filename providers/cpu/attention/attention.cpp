// attention over f64 and f32, and over narrow floats widened to f32. For each block of queries, a loop over blocks of
// keys updates the greatest score and the sum of each query (Milakov, Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022). So memory holds the scores of one block only. On tier relaxed
// the factors of both products are rounded to bf16.
#include "providers/cpu/attention/attention.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "providers/cpu/attention/kernel.h"
#include "providers/cpu/attention/problem.h"
#include "providers/cpu/attention/rounded_product.h"
#include "providers/cpu/onednn/relaxed.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/small_matmul/kernel.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block_keys = 64;  // so that scores, queries and sums of a block fit in the L1 cache
constexpr int64_t row_keys = 128;

// The buffers of one thread, in its part of the workspace.
template <class T>
struct Buffers {
  T *queries, *scores, *sums, *rows, *keys, *values, *bias, *turned, *most, *sum, *factor;
  KeyIndex<T>*low, *high;
  // Rounded factors: queries and scores with a column per query, keys with a row per key, values with a column each.
  Bf16Pair *query_pairs, *score_pairs, *key_pairs, *value_pairs;
};

// T is the type of computation.
template <class T>
class AttentionPrimitive final : public ep_primitive {
  static constexpr int32_t compute = sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64;
  static constexpr T none = -std::numeric_limits<T>::infinity();

 public:
  AttentionPrimitive(const ep_device& on, const ep_primitive_desc& desc, bool rounds)
      : desc_(desc),
        rounds_(rounds),
        kernels_(attention_kernels<T>(on.simd)),
        product_(product_kernel<T>(on.simd)),
        threads_(on.threads),
        block_((on.simd == SimdLevel::avx3 ? 3 : 2) * kernels_.lanes),
        read_(widen(desc.operands[0].dtype, on.simd)),
        write_(narrow(compute, desc.operands[0].dtype, on.simd)) {}

  bool has_workspace() const override { return true; }
  uint64_t workspace(const ep_shape* shapes) const override {
    return static_cast<uint64_t>(threads_) * floats(AttentionSizes(desc_, shapes)) * sizeof(T);
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "attention has no launch scalar 0 (scale).");
    const AttentionProblem problem(desc_, launch);
    const int64_t ratio = problem.heads / problem.groups;
    // Queries of heads that share keys are processed together if there are few.
    const bool folds = ratio > 1 && problem.queries < block_;
    const int64_t heads = folds ? problem.groups : problem.heads;
    const int64_t rows = folds ? ratio * problem.queries : problem.queries;
    const int64_t blocks = (rows + block_ - 1) / block_;
    const int64_t units = problem.batch * heads * blocks;
    const int64_t work = problem.batch * problem.heads * problem.queries * problem.keys;
    const auto size = static_cast<int64_t>(floats(problem) * sizeof(T));
    parallel(device->threads, work * (problem.width + problem.columns) * static_cast<int64_t>(sizeof(T)) / 96,
             [&](int32_t part, int32_t parts) {
               char* const space = address_of(launch.workspace) + runner() * size;
               const Buffers<T> buffers = cut(reinterpret_cast<T*>(space), problem);
               for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
                 const int64_t head = unit / blocks % heads;
                 const int64_t begin = unit % blocks * block_;
                 Queries queries = {problem, unit / blocks / heads,          folds ? head * ratio : head,
                                    begin,   std::min(block_, rows - begin), folds};
                 queries.count = problem.length(queries.batch);
                 if (queries.rows * 4 <= kernels_.lanes) {
                   by_row(queries, buffers);
                 } else {
                   by_block(queries, buffers);
                 }
               }
             });
    return EP_STATUS_OK;
  }

 private:
  // Queries of one head, or of all heads that share keys.
  struct Queries {
    const AttentionProblem& problem;
    int64_t batch;
    int64_t head;  // the first head
    int64_t begin;
    int64_t rows;
    bool folds;
    int64_t count = 0;  // number of keys of this batch

    int64_t head_of(int64_t row) const { return folds ? head + (begin + row) / problem.queries : head; }
    int64_t index_of(int64_t row) const { return folds ? (begin + row) % problem.queries : begin + row; }
    int64_t head_of_key() const { return problem.head_of_key(head); }
    KeyRange range(int64_t row) const { return problem.range(count, index_of(row)); }
  };

  // Consecutive rows of T.
  struct Block {
    const T* data;
    int64_t row;
  };

  uint64_t floats(const AttentionSizes& s) const {
    const int64_t wide = std::max(s.width, s.columns);
    int64_t all = block_ * (s.width + s.columns + wide + 3 * block_keys + 5) + row_keys * (s.width + s.columns);
    if (rounds_) {
      all += (block_ + block_keys) * pairs_of(s.width) + pairs_of(block_keys) * (block_ + s.columns);
    }
    return static_cast<uint64_t>((all + 15) / 16 * 16 + 15 * 16);
  }
  Buffers<T> cut(T* from, const AttentionSizes& s) const {
    const auto take = [&from](int64_t n) {
      T* const at = from;
      from += (n + 15) / 16 * 16;
      return at;
    };
    const auto numbers = [&take](int64_t n) { return reinterpret_cast<KeyIndex<T>*>(take(n)); };
    const auto pairs = [&](int64_t n) { return rounds_ ? reinterpret_cast<Bf16Pair*>(take(n)) : nullptr; };
    const int64_t n = block_;
    return {take(n * s.width),
            take(n * block_keys),
            take(n * s.columns),
            take(n * std::max(s.width, s.columns)),
            take(row_keys * s.width),
            take(row_keys * s.columns),
            take(n * block_keys),
            take(n * block_keys),
            take(n),
            take(n),
            take(n),
            numbers(n),
            numbers(n),
            pairs(n * pairs_of(s.width)),
            pairs(n * pairs_of(block_keys)),
            pairs(block_keys * pairs_of(s.width)),
            pairs(pairs_of(block_keys) * s.columns)};
  }

  // Returns rows [first, first + rows) of `of`, `columns` long: in place, or copied to `buffer`.
  Block fetch(const Matrices& of, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t columns,
              T* buffer) const {
    char* const from = of.at(batch, head, first);
    if (of.direct(compute)) return {reinterpret_cast<const T*>(from), of.strides[2]};
    if (of.strides[3] != 1 && of.strides[2] == 1) {
      for (int64_t p = 0; p < columns; ++p) read_(buffer + p, columns, from + p * of.strides[3] * of.size, 1, rows);
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        read_(buffer + i * columns, 1, from + i * of.strides[2] * of.size, of.strides[3], columns);
      }
    }
    return {buffer, columns};
  }

  // Returns BIAS of the query at `row` for keys [first, first + keys). A bool BIAS becomes 0 and -inf.
  const T* bias_row(const Queries& q, int64_t row, int64_t first, int64_t keys, T* buffer) const {
    const Matrices& bias = q.problem.bias;
    const char* from = bias.at(q.batch, q.head_of(row), q.index_of(row)) + first * bias.strides[3] * bias.size;
    if (bias.direct(compute)) return reinterpret_cast<const T*>(from);
    if (bias.dtype != EP_DTYPE_bool) {
      read_(buffer, 1, from, bias.strides[3], keys);
    } else {
      for (int64_t j = 0; j < keys; ++j) buffer[j] = from[j * bias.strides[3]] != 0 ? 0 : none;
    }
    return buffer;
  }

  // --- a block of queries, one per lane ---

  void by_block(const Queries& q, const Buffers<T>& buffers) const {
    const AttentionProblem& p = q.problem;
    const int64_t columns = (q.rows + kernels_.lanes - 1) / kernels_.lanes * kernels_.lanes;
    load_queries(q, columns, buffers);
    KeyRange all = q.range(0);
    for (int64_t row = 1; row < q.rows; ++row) {
      const KeyRange range = q.range(row);
      if (range.end == 0) continue;
      all = all.end == 0 ? range : KeyRange{std::min(all.first, range.first), std::max(all.end, range.end)};
    }
    std::fill_n(buffers.most, columns, none);
    std::fill_n(buffers.sum, columns, T{0});
    for (int64_t first = all.first; first < all.end; first += block_keys) {
      const Scores<T> scores = {buffers.scores, std::min(block_keys, all.end - first), columns};
      const Block key = fetch(p.key, q.batch, q.head_of_key(), first, scores.keys, p.width, buffers.keys);
      set_scores(key, p.width, scores, buffers);
      if (p.softcap > 0) kernels_.cap(scores.values, scores.keys * columns, static_cast<T>(p.softcap));
      if (p.bias.base != nullptr) add_bias(q, first, scores, buffers);
      mask(q, first, scores, buffers);
      const bool changes = kernels_.soften(scores, {buffers.most, buffers.sum, buffers.factor});
      const bool adds = first != all.first;
      if (adds && changes) kernels_.scale(buffers.sums, p.columns, columns, buffers.factor);
      const Block value = fetch(p.value, q.batch, q.head_of_key(), first, scores.keys, p.columns, buffers.values);
      add_values(value, p.columns, scores, adds, buffers);
    }
    if (all.end == 0) std::fill_n(buffers.sums, p.columns * columns, T{0});
    store_results(q, columns, buffers);
  }

  // The scores of the queries with a block of keys.
  void set_scores(const Block& key, int64_t width, const Scores<T>& scores, const Buffers<T>& buffers) const {
    const int64_t columns = scores.columns;
    if constexpr (std::is_same_v<T, float>) {
      if (rounds_) {
        const int64_t depth = pairs_of(width);
        for (int64_t j = 0; j < scores.keys; ++j) {
          round_row(buffers.key_pairs + j * depth, key.data + j * key.row, width);
        }
        return run(PairProduct{buffers.key_pairs, depth, 1, buffers.query_pairs, columns, nullptr, scores.values,
                               columns, scores.keys, columns, depth, false});
      }
    }
    product_({key.data, buffers.queries, nullptr, scores.values, scores.keys, columns, width, key.row, 1, columns, 0,
              columns});
  }

  // Sums the values of a block of keys, weighted by its scores.
  void add_values(const Block& value, int64_t width, const Scores<T>& scores, bool adds,
                  const Buffers<T>& buffers) const {
    const int64_t columns = scores.columns;
    if constexpr (std::is_same_v<T, float>) {
      if (rounds_) {
        round_rows(buffers.value_pairs, width, value.data, value.row, scores.keys, width);
        round_rows(buffers.score_pairs, columns, scores.values, columns, scores.keys, columns);
        return run(PairProduct{buffers.value_pairs, 1, width, buffers.score_pairs, columns, nullptr, buffers.sums,
                               columns, width, columns, pairs_of(scores.keys), adds});
      }
    }
    product_({value.data, scores.values, adds ? buffers.sums : nullptr, buffers.sums, width, columns, scores.keys, 1,
              value.row, columns, columns, columns});
  }

  void load_queries(const Queries& q, int64_t columns, const Buffers<T>& buffers) const {
    const AttentionProblem& p = q.problem;
    Block from = {buffers.rows, p.width};
    if (!q.folds) {
      from = fetch(p.query, q.batch, q.head, q.begin, q.rows, p.width, buffers.rows);
    } else {
      for (int64_t row = 0; row < q.rows; ++row) {
        read_(buffers.rows + row * p.width, 1, p.query.at(q.batch, q.head_of(row), q.index_of(row)), p.query.strides[3],
              p.width);
      }
    }
    kernels_.transpose(buffers.queries, columns, from.data, from.row, q.rows, p.width, static_cast<T>(p.scale));
    for (int64_t i = 0; q.rows < columns && i < p.width; ++i) {
      std::fill(buffers.queries + i * columns + q.rows, buffers.queries + (i + 1) * columns, T{0});
    }
    if constexpr (std::is_same_v<T, float>) {
      if (rounds_) round_rows(buffers.query_pairs, columns, buffers.queries, columns, p.width, columns);
    }
  }

  void add_bias(const Queries& q, int64_t first, const Scores<T>& scores, const Buffers<T>& buffers) const {
    const Matrices& bias = q.problem.bias;
    if (bias.strides[2] == 0 && (!q.folds || bias.strides[1] == 0)) {
      return kernels_.add_to_keys(scores, bias_row(q, 0, first, scores.keys, buffers.bias));
    }
    for (int64_t row = 0; row < q.rows; ++row) {
      T* const to = buffers.bias + row * scores.keys;
      const T* from = bias_row(q, row, first, scores.keys, to);
      if (from != to) std::copy_n(from, scores.keys, to);
    }
    std::fill(buffers.bias + q.rows * scores.keys, buffers.bias + scores.columns * scores.keys, T{0});
    kernels_.transpose(buffers.turned, scores.columns, buffers.bias, scores.keys, scores.columns, scores.keys, 1);
    kernels_.add(scores, buffers.turned);
  }

  // Masks the keys outside the range of each query.
  void mask(const Queries& q, int64_t first, const Scores<T>& scores, const Buffers<T>& buffers) const {
    bool needed = false;
    for (int64_t row = 0; row < scores.columns; ++row) {
      const KeyRange range = row < q.rows ? q.range(row) : KeyRange{first, first + scores.keys};
      buffers.low[row] = static_cast<KeyIndex<T>>(std::clamp<int64_t>(range.first - first, 0, scores.keys));
      buffers.high[row] = static_cast<KeyIndex<T>>(std::clamp<int64_t>(range.end - first, 0, scores.keys)) - 1;
      needed = needed || buffers.low[row] != 0 || buffers.high[row] != scores.keys - 1;
    }
    if (needed) kernels_.mask(scores, buffers.low, buffers.high);
  }

  void store_results(const Queries& q, int64_t columns, const Buffers<T>& buffers) const {
    const AttentionProblem& p = q.problem;
    for (int64_t row = 0; row < columns; ++row) {
      const T sum = buffers.sum[row];
      buffers.factor[row] = sum == 0 ? 0 : 1 / sum;
      if (row < q.rows) p.store_log_sum(q.batch, q.head_of(row), q.index_of(row), log_sum(buffers.most[row], sum));
    }
    kernels_.scale(buffers.sums, p.columns, columns, buffers.factor);
    if (p.dst.direct(compute) && !q.folds) {
      auto* const to = reinterpret_cast<T*>(p.dst.at(q.batch, q.head, q.begin));
      return kernels_.transpose(to, p.dst.strides[2], buffers.sums, columns, p.columns, q.rows, 1);
    }
    kernels_.transpose(buffers.rows, p.columns, buffers.sums, columns, p.columns, q.rows, 1);
    for (int64_t row = 0; row < q.rows; ++row) {
      char* const to = p.dst.at(q.batch, q.head_of(row), q.index_of(row));
      write_(to, p.dst.strides[3], buffers.rows + row * p.columns, 1, p.columns);
    }
  }

  static double log_sum(T most, T sum) {
    return sum == 0 ? static_cast<double>(none) : static_cast<double>(most) + std::log(static_cast<double>(sum));
  }

  // --- few queries, one at a time ---

  void by_row(const Queries& q, const Buffers<T>& buffers) const {
    const AttentionProblem& p = q.problem;
    KeyRange all = {p.keys, 0};
    for (int64_t row = 0; row < q.rows; ++row) {
      read_(buffers.queries + row * p.width, 1, p.query.at(q.batch, q.head_of(row), q.index_of(row)),
            p.query.strides[3], p.width);
      const KeyRange range = q.range(row);
      if (range.end != 0) all = {std::min(all.first, range.first), std::max(all.end, range.end)};
      buffers.most[row] = none;
      buffers.sum[row] = 0;
    }
    std::fill_n(buffers.sums, q.rows * p.columns, T{0});
    for (int64_t first = all.first; first < all.end; first += row_keys) {
      const int64_t keys = std::min(row_keys, all.end - first);
      const Block key = fetch(p.key, q.batch, q.head_of_key(), first, keys, p.width, buffers.keys);
      const Block value = fetch(p.value, q.batch, q.head_of_key(), first, keys, p.columns, buffers.values);
      for (int64_t row = 0; row < q.rows; ++row) {
        add_keys(q, row, first,
                 {buffers.queries + row * p.width, key.data, value.data, key.row, value.row, keys, p.width, p.columns},
                 buffers);
      }
    }
    for (int64_t row = 0; row < q.rows; ++row) {
      T* const sums = buffers.sums + row * p.columns;
      const T sum = buffers.sum[row];
      const T factor = sum == 0 ? 0 : 1 / sum;
      kernels_.scale_row(sums, p.columns, factor);
      write_(p.dst.at(q.batch, q.head_of(row), q.index_of(row)), p.dst.strides[3], sums, 1, p.columns);
      p.store_log_sum(q.batch, q.head_of(row), q.index_of(row), log_sum(buffers.most[row], sum));
    }
  }

  // Adds the contribution of `keys` to the query at `row`. `first` is the number of the first key.
  void add_keys(const Queries& q, int64_t row, int64_t first, Row<T> keys, const Buffers<T>& buffers) const {
    const AttentionProblem& p = q.problem;
    const KeyRange range = q.range(row);
    const int64_t begin = std::max(range.first, first);
    keys.count = std::min(range.end, first + keys.count) - begin;
    if (keys.count <= 0) return;
    keys.keys += (begin - first) * keys.key_row;
    keys.values += (begin - first) * keys.value_row;
    T* const scores = buffers.scores;
    kernels_.row_scores(keys, scores, static_cast<T>(p.scale));
    if (p.softcap > 0) kernels_.cap(scores, keys.count, static_cast<T>(p.softcap));
    if (p.bias.base != nullptr) {
      const T* bias = bias_row(q, row, begin, keys.count, buffers.bias);
      for (int64_t j = 0; j < keys.count; ++j) scores[j] += bias[j];
    }
    const T factor = kernels_.row_soften(scores, keys.count, &buffers.most[row], &buffers.sum[row]);
    kernels_.row_sum(keys, scores, buffers.sums + row * p.columns, factor);
  }

  ep_primitive_desc desc_;
  bool rounds_;
  const AttentionKernels<T>& kernels_;
  ProductKernel<T> product_;
  int32_t threads_;
  int64_t block_;
  ConvertFunction read_;
  ConvertFunction write_;
};

}  // namespace

Refusal Attention::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t align = desc.attributes.attention.align;
  if (!is_row_float(dtype)) return Refusal::because("%s is not a float", dtype_name(dtype));
  if (align != EP_ATTENTION_START && align != EP_ATTENTION_END) return Refusal::because("align %d", align);
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C}) {
    const ep_operand_desc* each = operand(desc, role);
    if (each == nullptr || each->rank != 4) return Refusal::because("operand %d is missing or not of rank 4", role);
    if (each->dtype != dtype) return Refusal::because("%s beside %s", dtype_name(each->dtype), dtype_name(dtype));
  }
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  if (bias != nullptr && (bias->rank != 4 || (bias->dtype != EP_DTYPE_bool && bias->dtype != dtype)))
    return Refusal::because("a bias of %s", dtype_name(bias->dtype));
  const ep_operand_desc* lengths = operand(desc, EP_ROLE_LENGTHS);
  if (lengths != nullptr && (lengths->rank != 1 || (lengths->dtype != EP_DTYPE_i32 && lengths->dtype != EP_DTYPE_i64)))
    return Refusal::because("lengths of %s", dtype_name(lengths->dtype));
  const ep_operand_desc* log_sum = operand(desc, EP_ROLE_LOG_SUM);
  const int32_t statistics = dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  if (log_sum != nullptr && (log_sum->rank != 4 || log_sum->dtype != statistics))
    return Refusal::because("a logarithm of %s", dtype_name(log_sum->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Attention::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (desc.operands[0].dtype == EP_DTYPE_f64) {
    *out = make_primitive<AttentionPrimitive<double>>(device, device, desc, false);
  } else {
    *out = make_primitive<AttentionPrimitive<float>>(device, device, desc, false);
  }
  return {};
}

Refusal Attention::relaxed_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not_relaxed(device, desc)) return refusal;
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  info.flags |= EP_SUPPORT_FLAG_RELAXED;
  return {};
}

Refusal Attention::relaxed_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  *out = make_primitive<AttentionPrimitive<float>>(device, device, desc, true);
  return {};
}

}  // namespace tenon::provider::cpu
