// attention and rotary.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// The consecutive rows of one batch and head of `operand`. They are read once for all queries.
struct Rows {
  std::vector<double> numbers;
  int64_t columns = 0;

  Rows() = default;
  Rows(const Operand& operand, int64_t batch, int64_t head) : columns(operand.dim(3)) {
    int64_t at[] = {batch, head, 0, 0};
    for (; at[2] < operand.dim(2); ++at[2]) {
      for (at[3] = 0; at[3] < columns; ++at[3]) numbers.push_back(operand.get<double>(at));
    }
  }
  const double* row(int64_t i) const { return numbers.data() + i * columns; }
};

// The values that all queries of one launch share.
struct Attention {
  Operand query, key, value, bias, lengths;
  ep_attention_attributes at;
  double scale;
  double softcap;

  int64_t length(int64_t batch) const {
    return lengths ? std::clamp<int64_t>(lengths.get<int64_t>(&batch), 0, key.dim(2)) : key.dim(2);
  }

  // The score of key `j`, a row of `keys`, for the query at `index` (batch, head, query) with the elements `numbers`.
  // Returns -inf if the key is masked.
  double score(const int64_t* index, int64_t j, const Rows& keys, const double* numbers) const {
    const int64_t count = length(index[0]);
    const int64_t position = index[2] + (at.align == EP_ATTENTION_END ? count - query.dim(2) : 0);
    if (j >= count || (at.before >= 0 && j < position - at.before) || (at.after >= 0 && j > position + at.after)) {
      return kNone;
    }
    const int64_t of_bias[] = {index[0], index[1], index[2], j};
    const bool selects = bias && bias.dtype() == DType::boolean;
    if (selects && bias.get<uint64_t>(of_bias) == 0) return kNone;
    double sum = 0;
    for (int64_t i = 0; i < query.dim(3); ++i) sum += numbers[i] * keys.row(j)[i];
    sum *= scale;
    if (softcap > 0) sum = softcap * std::tanh(sum / softcap);
    return bias && !selects ? sum + bias.get<double>(of_bias) : sum;
  }
};

}  // namespace

void run_attention(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand log_sum = call[EP_ROLE_LOG_SUM];
  const Attention all = {call[EP_ROLE_SRC],         call[EP_ROLE_SRC_B],      call[EP_ROLE_SRC_C],
                         call[EP_ROLE_BIAS],        call[EP_ROLE_LENGTHS],    call.desc.attributes.attention,
                         call.parameter<double>(0), call.parameter<double>(1)};
  const int64_t groups = all.query.dim(1) / all.key.dim(1);
  Rows queries, keys, values;
  for_each_index(dst.dims().first(3), [&](const int64_t* index) {
    if (index[2] == 0) {
      queries = Rows(all.query, index[0], index[1]);
      keys = Rows(all.key, index[0], index[1] / groups);
      values = Rows(all.value, index[0], index[1] / groups);
    }
    std::vector<double> weights;
    for (int64_t j = 0; j < all.key.dim(2); ++j) weights.push_back(all.score(index, j, keys, queries.row(index[2])));
    double most = kNone;
    for (const double score : weights) most = score > most || score != score ? score : most;
    double sum = 0;
    for (double& weight : weights) {
      weight = weight == kNone ? 0 : std::exp(weight - most);
      sum += weight;
    }
    int64_t to[] = {index[0], index[1], index[2], 0};
    if (log_sum) log_sum.set(to, sum == 0 ? kNone : most + std::log(sum));
    for (; to[3] < dst.dim(3); ++to[3]) {
      double total = 0;
      for (int64_t j = 0; j < all.key.dim(2); ++j) {
        const double weight = weights[static_cast<size_t>(j)];
        if (weight != 0) total += weight * values.row(j)[to[3]];
      }
      dst.set(to, sum == 0 ? 0 : total / sum);
    }
  });
}

void run_rotary(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand cosines = call[EP_ROLE_SRC_B];
  const Operand sines = call[EP_ROLE_SRC_C];
  const Operand indices = call[EP_ROLE_INDICES];
  const bool halves = call.desc.attributes.rotary.mode == EP_ROTARY_HALVES;
  const int64_t pairs = cosines.dims().back();
  for_each_index(src.dims().first(3), [&](const int64_t* row) {
    int64_t angle[] = {row[0], row[1], row[2], 0};
    int64_t* column = &angle[3];
    int64_t at[] = {row[0], row[1], row[2], 0};
    if (indices) {
      const int64_t place[] = {row[0], row[2]};
      const auto given = indices.get<int64_t>(place);
      angle[0] = given < 0 ? given + cosines.dim(0) : given;
      column = &angle[1];
      if (angle[0] < 0 || angle[0] >= cosines.dim(0)) {
        call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_INDICES, given, cosines.dim(0));
        for (; at[3] < src.dim(3); ++at[3]) dst.set(at, 0.0);
        return;
      }
    }
    for (*column = 0; *column < pairs; ++*column) {
      int64_t first[] = {row[0], row[1], row[2], halves ? *column : 2 * *column};
      int64_t second[] = {row[0], row[1], row[2], halves ? *column + pairs : 2 * *column + 1};
      const auto x = src.get<double>(first);
      const auto y = src.get<double>(second);
      const auto cosine = cosines.get<double>(angle);
      const auto sine = sines.get<double>(angle);
      dst.set(first, x * cosine - y * sine);
      dst.set(second, x * sine + y * cosine);
    }
    for (at[3] = 2 * pairs; at[3] < src.dim(3); ++at[3]) dst.set(at, src.get<double>(at));
  });
}

}  // namespace tenon::reference
