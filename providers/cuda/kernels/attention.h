// Shared by the kernels of attention: the part of the problem that a block computes, loading rows to shared memory,
// shaping scores, and writing results.
#pragma once

#include "providers/cuda/kernels/block.h"

namespace tenon::provider::cuda {

inline constexpr float attention_none = -std::numeric_limits<float>::infinity();
inline constexpr float log2_e = 1.4426950408889634F;

struct KeyRange {
  int32_t first, end;
};

// The keys that a query reads, before the bias masks any.
TENON_ON_GPU KeyRange keys_of(const AttentionArguments& a, int32_t length, int32_t query) {
  const int32_t position = query + (a.align_end != 0 ? length - a.queries : 0);
  KeyRange range = {0, length};
  if (a.before >= 0 && position - a.before > 0) range.first = position - a.before;
  if (a.after >= 0 && position + a.after + 1 < length) range.end = position + a.after + 1;
  return range;
}

struct AttentionRow {
  int32_t head, query;
};

// The work of a block: `rows` rows of a unit from `row` on, over some keys.
struct AttentionBlock {
  int32_t unit, batch, head, row, rows, split;
  int32_t length;  // number of keys of this batch
  KeyRange keys;   // keys of this split that any row reads; `first` is a multiple of the tile
  KeyRange whole;  // keys that every row reads

  // Row `i` of the block. Folded units have fewer than 2^24 rows, so a quotient of floats is off by at most one.
  TENON_ON_GPU AttentionRow place(const AttentionArguments& a, int32_t i) const {
    const int32_t index = row + i;
    if (a.fold == 1) return {head, index};
    auto step = static_cast<int32_t>(quick_quotient(static_cast<float>(index), static_cast<float>(a.queries)));
    if (step * a.queries > index) --step;
    if (index - step * a.queries >= a.queries) ++step;
    return {head + step, index - step * a.queries};
  }
  TENON_ON_GPU KeyRange keys_of_row(const AttentionArguments& a, int32_t i) const {
    return keys_of(a, length, place(a, i).query);
  }
  TENON_ON_GPU int64_t at(const int64_t* strides, const AttentionRow& of) const {
    return batch * strides[0] + of.head * strides[1] + of.query * strides[2];
  }
};

TENON_ON_GPU int32_t length_of(const AttentionArguments& a, int32_t batch) {
  if (a.lengths == 0) return a.keys;
  const int64_t at = batch * a.length_stride;
  const int64_t given = a.wide_lengths != 0 ? reinterpret_cast<const int64_t*>(a.lengths)[at]
                                            : reinterpret_cast<const int32_t*>(a.lengths)[at];
  return given < 0 ? 0 : given > a.keys ? a.keys : static_cast<int32_t>(given);
}

// The block of this thread. Units follow each other; if the rows of a unit read different numbers of keys, the last
// rows of all units come first, since they may take longest.
TENON_ON_GPU AttentionBlock attention_block(const AttentionArguments& a, int32_t rows, int32_t tile) {
  AttentionBlock block;
  auto number = static_cast<int32_t>(block_in_grid());
  block.split = number % a.splits;
  number /= a.splits;
  int32_t which;
  if (a.after >= 0) {
    block.unit = number % a.units;
    which = a.row_blocks - 1 - number / a.units;
  } else {
    which = number % a.row_blocks;
    block.unit = number / a.row_blocks;
  }
  const int32_t heads = a.heads / a.fold;
  block.batch = block.unit / heads;
  block.head = block.unit % heads * a.fold;
  block.row = which * rows;
  block.rows = a.unit_rows - block.row < rows ? a.unit_rows - block.row : rows;
  block.length = length_of(a, block.batch);
  const int32_t least = a.fold == 1 ? block.row : 0;
  const int32_t most = a.fold == 1 ? block.row + block.rows - 1 : a.queries - 1;
  const KeyRange low = keys_of(a, block.length, least);
  const KeyRange high = keys_of(a, block.length, most);
  block.whole = {high.first, low.end};
  const int32_t begin = block.split * a.split_keys;
  block.keys.first = (low.first > begin ? low.first : begin) / tile * tile;
  block.keys.end = high.end - begin < a.split_keys ? high.end : begin + a.split_keys;
  return block;
}

// Rows of one operand.
struct AttentionRows {
  uint64_t address;
  int64_t step;  // along a row
  int32_t columns;
  int32_t dtype;
  bool vector;
};

// Loads `rows` rows to shared memory as elements of `Element`: float, or 16-bit values. row_at(i) is the offset of row
// i. Rows from `count` on, and columns beyond the last one, become 0. The load is complete after copies_arrive() and
// block_meets().
template <class Element, int row_bytes, int rows, bool unrolled, class RowAt>
TENON_ON_GPU void bring_rows(unsigned char* to, const AttentionRows& from, int count, const RowAt& row_at) {
  constexpr int chunks = row_bytes / 16;
  constexpr int each = 16 / static_cast<int>(sizeof(Element));
  constexpr int at_once = attention_threads / chunks;
  static_assert(rows % at_once == 0);
  const auto thread = static_cast<int>(thread_in_block());
  const int chunk = thread % chunks;
  const int column = chunk * each;
  if (from.vector) {
    const auto* base = reinterpret_cast<const Element*>(from.address) + column;
    const auto bring = [&](int row) {
      const bool inside = row < count && column < from.columns;
      copy_16(chunk_at<row_bytes>(to, row, chunk), inside ? base + row_at(row) : base, inside);
    };
    if constexpr (unrolled) {
      TENON_UNROLL
      for (int i = 0; i < rows / at_once; ++i) bring(i * at_once + thread / chunks);
    } else {
      TENON_ROLLED
      for (int i = 0; i < rows / at_once; ++i) bring(i * at_once + thread / chunks);
    }
    return;
  }
  TENON_ROLLED
  for (int row = thread / chunks; row < rows; row += at_once) {
    auto* const elements = reinterpret_cast<Element*>(chunk_at<row_bytes>(to, row, chunk));
    TENON_ROLLED
    for (int e = 0; e < each; ++e) {
      Element value{};
      if (row < count && column + e < from.columns) {
        const int64_t at = row_at(row) + (column + e) * from.step;
        if constexpr (std::is_same_v<Element, float>)
          value = load<float>(from.address, at, from.dtype);
        else
          value = reinterpret_cast<const Element*>(from.address)[at];
      }
      elements[e] = value;
    }
  }
}

template <class Element, int row_bytes, int rows>
TENON_ON_GPU void bring_queries(unsigned char* to, const AttentionArguments& a, const AttentionBlock& block) {
  const AttentionRows from = {a.query, a.query_strides[3], a.width, a.dtype, a.query_vector != 0};
  bring_rows<Element, row_bytes, rows, false>(to, from, block.rows,
                                              [&](int row) { return block.at(a.query_strides, block.place(a, row)); });
}
template <class Element, int row_bytes, int rows>
TENON_ON_GPU void bring_keys(unsigned char* to, const AttentionArguments& a, const AttentionBlock& block,
                             int32_t first) {
  const AttentionRows from = {a.key, a.key_strides[3], a.width, a.dtype, a.key_vector != 0};
  const int64_t base = block.batch * a.key_strides[0] + block.head / a.ratio * a.key_strides[1];
  bring_rows<Element, row_bytes, rows, true>(to, from, block.length - first,
                                             [&](int row) { return base + (first + row) * a.key_strides[2]; });
}
template <class Element, int row_bytes, int rows>
TENON_ON_GPU void bring_values(unsigned char* to, const AttentionArguments& a, const AttentionBlock& block,
                               int32_t first) {
  const AttentionRows from = {a.value, a.value_strides[3], a.columns, a.dtype, a.value_vector != 0};
  const int64_t base = block.batch * a.value_strides[0] + block.head / a.ratio * a.value_strides[1];
  bring_rows<Element, row_bytes, rows, true>(to, from, block.length - first,
                                             [&](int row) { return base + (first + row) * a.value_strides[2]; });
}

// tanh(x) with an error of few units in the last place: a power series where 1 - tanh(x) would cancel.
TENON_ON_GPU float cap_curve(float x) {
  const float square = x * x;
  float series = std::fma(square, 62.0F / 2835, -17.0F / 315);
  series = std::fma(series, square, 2.0F / 15);
  series = std::fma(series, square, -1.0F / 3);
  const float curve = 1 - quick_quotient(2, 1 + power_of_two(x * (2 * log2_e)));
  return square < 0.09F ? std::fma(series * square, x, x) : curve;
}

// The scores of one row with cap and bias: of(product, key).
struct ShapedScores {
  const AttentionArguments& a;
  int64_t bias;  // offset of the row
  float scale, softcap, inverse;

  TENON_ON_GPU ShapedScores(const AttentionArguments& arguments, const AttentionBlock& block, int32_t row)
      : a(arguments),
        bias(a.bias == 0 ? 0 : block.at(a.bias_strides, block.place(a, row))),
        scale(static_cast<float>(a.scale)),
        softcap(static_cast<float>(a.softcap)),
        inverse(1 / softcap) {}
  TENON_ON_GPU float of(float product, int32_t key) const {
    float score = product * scale;
    if (softcap > 0) score = softcap * cap_curve(score * inverse);
    if (a.bias == 0) return score;
    const int64_t at = bias + key * a.bias_strides[3];
    if (a.bias_dtype != EP_DTYPE_bool) return score + load<float>(a.bias, at, a.bias_dtype);
    return reinterpret_cast<const uint8_t*>(a.bias)[at] != 0 ? score : attention_none;
  }
};

// Running values of one row: the greatest score so far, and the sum of the weights 2^(factor * (score - greatest)).
struct Running {
  float most = attention_none;
  float total = 0;

  // Includes `greatest` of further scores. Returns the factor by which earlier weights shrink; base() is then the
  // number to subtract from factor * score.
  TENON_ON_GPU float raise(float greatest, float factor) {
    const float before = base(factor);
    const bool starts = most == attention_none;
    most = std::fmax(most, greatest);
    const float shrink = starts ? 0 : power_of_two(before - base(factor));
    total *= shrink;
    return shrink;
  }
  TENON_ON_GPU float base(float factor) const { return most == attention_none ? 0 : most * factor; }
};

// The factor that turns a score into an exponent of 2, or of e.
TENON_ON_GPU float score_factor(const AttentionArguments& a) {
  return a.shaped != 0 ? log2_e : static_cast<float>(a.scale * 1.4426950408889634);
}
TENON_ON_GPU float natural_factor(const AttentionArguments& a) {
  return a.shaped != 0 ? 1 : static_cast<float>(a.scale);
}

// The address of a row's sums in `parts`, a multiple of 16 bytes.
TENON_ON_GPU float* part_at(const AttentionArguments& a, int64_t unit, int32_t row, int32_t split) {
  return reinterpret_cast<float*>(a.parts) +
         ((unit * a.unit_rows + row) * a.splits + split) * attention_part_floats(a.columns);
}
// The offset after the sums, where the greatest score and the sum of the weights are stored.
TENON_ON_GPU int64_t part_end(const AttentionArguments& a) { return attention_part_floats(a.columns) - 4; }

// Finishes row `row` of the block. If `first`, writes its single values: the logarithm, or the numbers of the row's
// part. Returns the factor for the sums of the columns.
TENON_ON_GPU float end_row(const AttentionArguments& a, const AttentionBlock& block, int32_t row, float most,
                           float total, bool first) {
  const bool writes = first && row < block.rows;
  if (a.splits > 1) {
    if (writes) {
      float* const part = part_at(a, block.unit, block.row + row, block.split) + part_end(a);
      part[0] = most;
      part[1] = total;
    }
    return 1;
  }
  if (writes && a.log_sum != 0) {
    reinterpret_cast<float*>(a.log_sum)[block.at(a.log_sum_strides, block.place(a, row))] =
        total == 0 ? attention_none : most + std::log(total);
  }
  return total == 0 ? 0 : 1 / total;
}

// Writes the rows of the block, stored at `from` as rows of `width` floats, to the result or to their parts. Each row
// is the sum of `copies` rows that are `copy_rows` apart.
template <int width, int copies = 1, int copy_rows = 0>
TENON_ON_GPU void store_rows(const AttentionArguments& a, const AttentionBlock& block, unsigned char* from) {
  constexpr int chunks = width / 4;
  TENON_ROLLED
  for (auto i = static_cast<int>(thread_in_block()); i < block.rows * chunks; i += attention_threads) {
    const int row = i / chunks;
    const int32_t column = i % chunks * 4;
    if (column >= a.columns) continue;
    auto sums = *reinterpret_cast<const Chunk16<float>*>(chunk_at<4 * width>(from, row, i % chunks));
    TENON_UNROLL
    for (int copy = 1; copy < copies; ++copy) {
      const auto more =
          *reinterpret_cast<const Chunk16<float>*>(chunk_at<4 * width>(from, copy * copy_rows + row, i % chunks));
      TENON_UNROLL
      for (int e = 0; e < 4; ++e) sums.at[e] += more.at[e];
    }
    const int32_t count = a.columns - column;
    if (a.splits > 1) {
      *reinterpret_cast<Chunk16<float>*>(part_at(a, block.unit, block.row + row, block.split) + column) = sums;
    } else {
      const int64_t at = block.at(a.dst_strides, block.place(a, row)) + column * a.dst_strides[3];
      with_storage<float>(a.dtype, [&](auto storage) {
        store_chunk_as<4, decltype(storage)>(sums.at, a.dst, at, a.dst_strides[3], a.dst_vector != 0,
                                             count < 4 ? count : 4);
      });
    }
  }
}

}  // namespace tenon::provider::cuda
