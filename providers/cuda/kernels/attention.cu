// attention_f32_<width> computes in f32, attention_f16_<width> and attention_bf16_<width> on tensor cores. They take
// rows of up to <width> elements; ..._few are for up to 16 queries. attention_plain_<class> takes any row length.
// attention_combine combines the results of splits. rotary_<class> rotates pairs of elements.
#include "providers/cuda/kernels/fault.h"
#include "providers/cuda/kernels/narrow_attention.h"
#include "providers/cuda/kernels/wide_attention.h"

namespace tenon::provider::cuda {

// One row per block, in double if the dtype is f64. The block takes attention_chunk keys at a time with one thread per
// key, then has one thread per column. Columns beyond the number of threads need another pass over the keys.
template <class Class>
TENON_ON_GPU void attention_plain(const AttentionArguments& a) {
  auto* const weights = reinterpret_cast<Class*>(shared_memory());
  const auto thread = static_cast<int32_t>(thread_in_block());
  constexpr Class none = -std::numeric_limits<Class>::infinity();
  for (int64_t number = block_in_grid(); number < int64_t{a.units} * a.unit_rows; number += blocks_in_grid()) {
    const int64_t unit = number / a.unit_rows;
    const auto batch = static_cast<int32_t>(unit / a.heads);
    const AttentionRow place = {static_cast<int32_t>(unit % a.heads), static_cast<int32_t>(number % a.unit_rows)};
    const auto row_at = [&](const int64_t* strides) {
      return batch * strides[0] + place.head * strides[1] + place.query * strides[2];
    };
    const int32_t length = length_of(a, batch);
    const KeyRange range = keys_of(a, length, place.query);
    const int32_t group = place.head / a.ratio;
    const int64_t query = row_at(a.query_strides);
    const auto score_of = [&](int32_t key) {
      const int64_t bias = row_at(a.bias_strides) + key * a.bias_strides[3];
      const bool selects = a.bias != 0 && a.bias_dtype == EP_DTYPE_bool;
      if (selects && reinterpret_cast<const uint8_t*>(a.bias)[bias] == 0) return none;
      const int64_t at = batch * a.key_strides[0] + group * a.key_strides[1] + key * a.key_strides[2];
      Class sum = 0;
      TENON_ROLLED
      for (int32_t i = 0; i < a.width; ++i) {
        sum = std::fma(load<Class>(a.query, query + i * a.query_strides[3], a.dtype),
                       load<Class>(a.key, at + i * a.key_strides[3], a.dtype), sum);
      }
      sum *= static_cast<Class>(a.scale);
      if (a.softcap > 0) {
        const auto cap = static_cast<Class>(a.softcap);
        sum = cap * std::tanh(sum / cap);
      }
      return a.bias == 0 || selects ? sum : sum + load<Class>(a.bias, bias, a.bias_dtype);
    };
    for (int32_t column = thread; column - thread < a.columns; column += attention_threads) {
      Class most = none;
      Class total = 0;
      Class result = 0;
      TENON_ROLLED
      for (int32_t begin = range.first; begin < range.end; begin += attention_chunk) {
        const int32_t count = range.end - begin < attention_chunk ? range.end - begin : attention_chunk;
        if (thread < count) weights[thread] = score_of(begin + thread);
        block_meets();
        Class greatest = most;
        TENON_ROLLED
        for (int32_t j = 0; j < count; ++j) greatest = std::fmax(greatest, weights[j]);
        const Class base = greatest == none ? 0 : greatest;
        const Class shrink = std::exp(most - base);
        most = greatest;
        total *= shrink;
        result *= shrink;
        block_meets();
        if (thread < count) weights[thread] = std::exp(weights[thread] - base);
        block_meets();
        const int64_t value = batch * a.value_strides[0] + group * a.value_strides[1] + column * a.value_strides[3];
        TENON_ROLLED
        for (int32_t j = 0; j < count; ++j) {
          const Class weight = weights[j];
          total += weight;
          if (column < a.columns)
            result = std::fma(weight, load<Class>(a.value, value + (begin + j) * a.value_strides[2], a.dtype), result);
        }
        block_meets();
      }
      if (column < a.columns) {
        store<Class>(a.dst, row_at(a.dst_strides) + column * a.dst_strides[3], a.dtype,
                     total == 0 ? Class{0} : result / total);
      }
      if (column == 0 && a.log_sum != 0)
        reinterpret_cast<Class*>(a.log_sum)[row_at(a.log_sum_strides)] = total == 0 ? none : most + std::log(total);
    }
  }
}

// One block per row and 128 columns. A warp adds every fourth part; a thread adds four columns of it.
TENON_ON_GPU void attention_combine(const AttentionArguments& a) {
  constexpr int warps = attention_threads / warp_threads;
  constexpr int columns = 4 * warp_threads;
  auto* const weights = reinterpret_cast<float*>(shared_memory());
  auto* const sums = reinterpret_cast<Chunk16<float>*>(weights + attention_most_splits);
  const auto thread = static_cast<int32_t>(thread_in_block());
  const int32_t lane = thread % warp_threads;
  const int32_t warp = thread / warp_threads;
  const int32_t column_blocks = (a.columns + columns - 1) / columns;
  const auto number = static_cast<int32_t>(block_in_grid());
  const int32_t column = number % column_blocks * columns + 4 * lane;
  AttentionBlock block{};
  block.unit = number / column_blocks / a.unit_rows;
  block.batch = block.unit / (a.heads / a.fold);
  block.head = block.unit % (a.heads / a.fold) * a.fold;
  const AttentionRow place = block.place(a, number / column_blocks % a.unit_rows);
  const float* const parts = part_at(a, block.unit, number / column_blocks % a.unit_rows, 0);
  const int64_t step = attention_part_floats(a.columns);

  float most = attention_none;
  for (int32_t split = lane; split < a.splits; split += warp_threads)
    most = std::fmax(most, parts[split * step + part_end(a)]);
  TENON_UNROLL
  for (int mask = 1; mask < warp_threads; mask *= 2) most = std::fmax(most, from_lane_across(most, mask));
  const float base = most == attention_none ? 0 : most;
  float total = 0;
  for (int32_t split = lane; split < a.splits; split += warp_threads) {
    const float weight = power_of_two((parts[split * step + part_end(a)] - base) * log2_e);
    total = std::fma(weight, parts[split * step + part_end(a) + 1], total);
    if (warp == 0) weights[split] = weight;
  }
  TENON_UNROLL
  for (int mask = 1; mask < warp_threads; mask *= 2) total += from_lane_across(total, mask);
  block_meets();

  Chunk16<float> sum = {};
  if (column < a.columns) {
    TENON_UNROLL_4
    for (int32_t split = warp; split < a.splits; split += warps) {
      const auto part = *reinterpret_cast<const Chunk16<float>*>(parts + split * step + column);
      TENON_UNROLL
      for (int e = 0; e < 4; ++e) sum.at[e] = std::fma(weights[split], part.at[e], sum.at[e]);
    }
  }
  sums[thread] = sum;
  block_meets();
  if (warp != 0) return;
  TENON_UNROLL
  for (int other = 1; other < warps; ++other) {
    TENON_UNROLL
    for (int e = 0; e < 4; ++e) sum.at[e] += sums[other * warp_threads + lane].at[e];
  }
  const float share = total == 0 ? 0 : 1 / total;
  TENON_ROLLED
  for (int e = 0; e < 4; ++e) {
    if (column < a.columns)
      store<float>(a.dst, block.at(a.dst_strides, place) + (column + e) * a.dst_strides[3], a.dtype, sum.at[0] * share);
    sum = {sum.at[1], sum.at[2], sum.at[3], sum.at[0]};
    if (column + e + 1 >= a.columns) break;
  }
  if (column == 0 && a.log_sum != 0) {
    reinterpret_cast<float*>(a.log_sum)[block.at(a.log_sum_strides, place)] =
        total == 0 ? attention_none : most + std::log(total);
  }
}

// One thread per pair of each row, and per element that is in no pair.
template <class Class>
TENON_ON_GPU void rotary(const RotaryArguments& a) {
  const int64_t items = a.dims[3] - a.pairs;
  const int64_t count = a.dims[0] * a.dims[1] * a.dims[2] * items;
  const auto angle = [&](uint64_t address, int64_t at) {
    return a.angle_dtype == EP_DTYPE_f32 ? static_cast<Class>(reinterpret_cast<const float*>(address)[at])
                                         : load<Class>(address, at, a.dtype);
  };
  for (int64_t i = thread_in_grid(); i < count; i += threads_in_grid()) {
    const int64_t item = i % items;
    const int64_t row = i / items;
    const int64_t place[3] = {row / a.dims[2] / a.dims[1], row / a.dims[2] % a.dims[1], row % a.dims[2]};
    const auto row_at = [&](const int64_t* strides) {
      return place[0] * strides[0] + place[1] * strides[1] + place[2] * strides[2];
    };
    const int64_t to = row_at(a.dst_strides);
    const int64_t from = row_at(a.src_strides);
    int64_t cosine = 0;
    int64_t sine = 0;
    bool bad = false;
    if (a.indices == 0) {
      cosine = row_at(a.cosine_strides);
      sine = row_at(a.sine_strides);
    } else {
      const int64_t at = place[0] * a.index_strides[0] + place[2] * a.index_strides[1];
      const int64_t given = a.wide_indices != 0 ? reinterpret_cast<const int64_t*>(a.indices)[at]
                                                : reinterpret_cast<const int32_t*>(a.indices)[at];
      const int64_t index = given < 0 ? given + a.table_rows : given;
      bad = index < 0 || index >= a.table_rows;
      if (bad) report_fault(a.fault, EP_FAULT_INDEX_OUT_OF_RANGE, given, a.table_rows);
      cosine = index * a.cosine_strides[2];
      sine = index * a.sine_strides[2];
    }
    const auto read = [&](int64_t column) {
      return bad ? Class{0} : load<Class>(a.src, from + column * a.src_strides[3], a.dtype);
    };
    const auto write = [&](int64_t column, Class value) {
      store<Class>(a.dst, to + column * a.dst_strides[3], a.dtype, value);
    };
    if (item >= a.pairs) {
      write(a.pairs + item, read(a.pairs + item));
      continue;
    }
    const int64_t first = a.interleaved != 0 ? 2 * item : item;
    const int64_t second = a.interleaved != 0 ? 2 * item + 1 : item + a.pairs;
    const Class x = read(first);
    const Class y = read(second);
    const Class c = bad ? Class{0} : angle(a.cosines, cosine + item * a.cosine_strides[3]);
    const Class s = bad ? Class{0} : angle(a.sines, sine + item * a.sine_strides[3]);
    write(first, x * c - y * s);
    write(second, x * s + y * c);
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::attention_threads;
using kernels::AttentionArguments;
using kernels::RotaryArguments;

#define TENON_WIDE_ATTENTION(name, width, rows, keys, blocks)                                                        \
  TENON_BLOCK_KERNEL(attention_threads, blocks) attention_f32_##name(TENON_ARGUMENT(AttentionArguments) arguments) { \
    kernels::attention_wide<width, rows, keys>(arguments);                                                           \
  }
#define TENON_NARROW_ATTENTION(name, Storage, width, tiles, keys, key_warps, blocks)                             \
  TENON_BLOCK_KERNEL(attention_threads, blocks) attention_##name(TENON_ARGUMENT(AttentionArguments) arguments) { \
    kernels::attention_narrow<kernels::Storage, width, tiles, keys, key_warps>(arguments);                       \
  }
// Rows and keys must match `tiles` in attention/plan.cpp.
TENON_WIDE_ATTENTION(64, 64, 64, 64, 3)
TENON_WIDE_ATTENTION(128, 128, 64, 32, 3)
TENON_WIDE_ATTENTION(256, 256, 32, 32, 2)
TENON_WIDE_ATTENTION(64_few, 64, 16, 64, 3)
TENON_WIDE_ATTENTION(128_few, 128, 16, 32, 3)
TENON_NARROW_ATTENTION(f16_64, Half, 64, 1, 64, 1, 4)
TENON_NARROW_ATTENTION(f16_128, Half, 128, 2, 64, 1, 2)
TENON_NARROW_ATTENTION(f16_128_some, Half, 128, 1, 64, 1, 3)
TENON_NARROW_ATTENTION(f16_256, Half, 256, 1, 32, 1, 2)
TENON_NARROW_ATTENTION(f16_64_few, Half, 64, 1, 64, 4, 3)
TENON_NARROW_ATTENTION(f16_128_few, Half, 128, 1, 64, 4, 3)
TENON_NARROW_ATTENTION(bf16_64, BFloat, 64, 1, 64, 1, 4)
TENON_NARROW_ATTENTION(bf16_128, BFloat, 128, 2, 64, 1, 2)
TENON_NARROW_ATTENTION(bf16_128_some, BFloat, 128, 1, 64, 1, 3)
TENON_NARROW_ATTENTION(bf16_256, BFloat, 256, 1, 32, 1, 2)
TENON_NARROW_ATTENTION(bf16_64_few, BFloat, 64, 1, 64, 4, 3)
TENON_NARROW_ATTENTION(bf16_128_few, BFloat, 128, 1, 64, 4, 3)

TENON_BLOCK_KERNEL(attention_threads, 1) attention_plain_f32(TENON_ARGUMENT(AttentionArguments) arguments) {
  kernels::attention_plain<float>(arguments);
}
TENON_BLOCK_KERNEL(attention_threads, 1) attention_plain_f64(TENON_ARGUMENT(AttentionArguments) arguments) {
  kernels::attention_plain<double>(arguments);
}
TENON_BLOCK_KERNEL(attention_threads, 1) attention_combine(TENON_ARGUMENT(AttentionArguments) arguments) {
  kernels::attention_combine(arguments);
}
TENON_KERNEL rotary_f32(TENON_ARGUMENT(RotaryArguments) arguments) { kernels::rotary<float>(arguments); }
TENON_KERNEL rotary_f64(TENON_ARGUMENT(RotaryArguments) arguments) { kernels::rotary<double>(arguments); }
