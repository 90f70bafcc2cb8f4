// Attention of f16 and bf16 on tensor cores, with sums in f32. A warp computes 16 * `tiles` rows. Shared memory holds
// one tile of keys and values; the values of a tile arrive while its scores are computed, and the next keys while the
// values are multiplied (Dao, "FlashAttention-2", 2023). With `key_warps` > 1, that many warps share rows and each
// takes some keys of a tile. A weight is the sum of two narrow numbers, so that weights are as exact as in f32
// arithmetic.
#pragma once

#include "providers/cuda/kernels/attention.h"

namespace tenon::provider::cuda {

template <class Storage, int width, int tiles, int keys, int key_warps>
struct NarrowTile {
  static constexpr int warps = attention_threads / warp_threads;
  static constexpr int warp_rows = 16 * tiles;
  static constexpr int rows = warps / key_warps * warp_rows;
  static constexpr int warp_keys = keys / key_warps;
  static constexpr int row_bytes = width * 2;
  static constexpr int bytes = (rows + 2 * keys) * row_bytes;
  static constexpr int value_pairs = tiles == 1 ? 2 : 4;  // pairs of 16 columns per product
  // Rows are assumed to be longer than 3/4 of `width`: code without branches overlaps loads and products better.
  static constexpr int sure = width * 3 / 4;
  static_assert(key_warps * rows * (width * 4 + (key_warps > 1 ? 8 : 0)) <= bytes,
                "the results of all warps take the place of the tiles");

  unsigned char* const queries = shared_memory();
  unsigned char* const keys_tile = queries + rows * row_bytes;
  unsigned char* const values = keys_tile + keys * row_bytes;
  const int warp = static_cast<int>(thread_in_block()) / warp_threads;
  const int first_row = warp / key_warps * warp_rows;
  const int first_key = warp % key_warps * warp_keys;
  const int lane = static_cast<int>(thread_in_block()) % warp_threads;
  // Queries of the warp.
  const Matrices<row_bytes, false> of_queries{queries + first_row * row_bytes};
  const Matrices<row_bytes, true> of_keys{keys_tile + first_key * row_bytes};
  const Matrices<row_bytes, false> of_values{values + first_key * row_bytes};

  // The row of the block for indices `t` and `half` of the thread.
  TENON_ON_GPU int row_of(int t, int half) const { return first_row + 16 * t + 8 * half + lane / 4; }
  TENON_ON_GPU int column_of(int n, int e) const { return 8 * n + lane % 4 * 2 + e; }

  TENON_ON_GPU void multiply_keys(float (&scores)[tiles][warp_keys / 8][4], int32_t used) const {
    TENON_UNROLL
    for (int k = 0; k < width / 16; ++k) {
      if (16 * k < sure || 16 * k < used) {
        uint32_t query[tiles][4];
        uint32_t key[warp_keys / 16][4];
        TENON_UNROLL
        for (int t = 0; t < tiles; ++t) {
          of_queries.load(query[t], 16 * t, k);
        }
        TENON_UNROLL
        for (int n = 0; n < warp_keys / 16; ++n) {
          of_keys.load(key[n], 16 * n, k);
        }
        multiply<Storage>(scores, 0, query, key);
      }
    }
  }

  // The weights of 16 keys, from 16 * k on, as sums of two narrow numbers.
  TENON_ON_GPU static void split(const float (&weights)[tiles][warp_keys / 8][4], int k, uint32_t (&high)[tiles][4],
                                 uint32_t (&low)[tiles][4]) {
    TENON_UNROLL
    for (int t = 0; t < tiles; ++t) {
      TENON_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float first = weights[t][2 * k + i / 2][i % 2 * 2];
        const float second = weights[t][2 * k + i / 2][i % 2 * 2 + 1];
        high[t][i] = narrow_pair(Storage{}, first, second);
        low[t][i] =
            narrow_pair(Storage{}, first - first_of<Storage>(high[t][i]), second - second_of<Storage>(high[t][i]));
      }
    }
  }

  // With one row of tiles, the split weights of all keys are kept; with several, only 16 keys are split at a time, to
  // save registers.
  TENON_ON_GPU void multiply_values(const float (&weights)[tiles][warp_keys / 8][4], float (&sums)[tiles][width / 8][4],
                                    int32_t used) const {
    if constexpr (tiles == 1) {
      uint32_t high[warp_keys / 16][tiles][4];
      uint32_t low[warp_keys / 16][tiles][4];
      TENON_UNROLL
      for (int k = 0; k < warp_keys / 16; ++k) split(weights, k, high[k], low[k]);
      TENON_UNROLL
      for (int p = 0; p < width / 16; p += value_pairs) {
        if (16 * p < sure || 16 * p < used) {
          TENON_UNROLL
          for (int k = 0; k < warp_keys / 16; ++k) {
            uint32_t value[value_pairs][4];
            TENON_UNROLL
            for (int n = 0; n < value_pairs; ++n) of_values.load_turned(value[n], 16 * k, p + n);
            multiply<Storage>(sums, 2 * p, high[k], value);
            multiply<Storage>(sums, 2 * p, low[k], value);
          }
        }
      }
    } else {
      TENON_UNROLL
      for (int k = 0; k < warp_keys / 16; ++k) {
        uint32_t high[tiles][4];
        uint32_t low[tiles][4];
        split(weights, k, high, low);
        TENON_UNROLL
        for (int p = 0; p < width / 16; p += value_pairs) {
          uint32_t value[value_pairs][4];
          TENON_UNROLL
          for (int n = 0; n < value_pairs; ++n) of_values.load_turned(value[n], 16 * k, p + n);
          multiply<Storage>(sums, 2 * p, high, value);
          multiply<Storage>(sums, 2 * p, low, value);
        }
      }
    }
  }

  // Shapes and masks the scores of the keys from `begin` on.
  TENON_ON_GPU void finish_scores(const AttentionArguments& a, const AttentionBlock& block, int32_t begin,
                                  float (&scores)[tiles][warp_keys / 8][4]) const {
    const bool whole = begin >= block.whole.first && begin + keys <= block.whole.end;
    if (a.shaped != 0) {
      // A loop moves each column in turn to the place of the first ones, so that the code exists once.
      TENON_ROLLED
      for (int n = 0; n < warp_keys / 8; ++n) {
        TENON_UNROLL
        for (int t = 0; t < tiles; ++t) {
          float first[4];
          TENON_UNROLL
          for (int half = 0; half < 2; ++half) {
            const int row = row_of(t, half) < block.rows ? row_of(t, half) : block.rows - 1;
            const KeyRange range = block.keys_of_row(a, row);
            const ShapedScores shaped(a, block, row);
            TENON_UNROLL
            for (int e = 0; e < 2; ++e) {
              const int32_t key = begin + first_key + column_of(n, e);
              first[2 * half + e] =
                  key < range.first || key >= range.end ? attention_none : shaped.of(scores[t][0][2 * half + e], key);
            }
          }
          TENON_UNROLL
          for (int e = 0; e < 4; ++e) {
            TENON_UNROLL
            for (int m = 1; m < warp_keys / 8; ++m) scores[t][m - 1][e] = scores[t][m][e];
            scores[t][warp_keys / 8 - 1][e] = first[e];
          }
        }
      }
    } else if (!whole) {
      TENON_UNROLL
      for (int t = 0; t < tiles; ++t) {
        TENON_UNROLL
        for (int half = 0; half < 2; ++half) {
          KeyRange range = block.keys_of_row(a, row_of(t, half));
          range.first -= begin + first_key + column_of(0, 0);
          range.end -= begin + first_key + column_of(0, 0);
          TENON_UNROLL
          for (int n = 0; n < warp_keys / 8; ++n) {
            TENON_UNROLL
            for (int e = 0; e < 2; ++e) {
              if (8 * n + e < range.first || 8 * n + e >= range.end) scores[t][n][2 * half + e] = attention_none;
            }
          }
        }
      }
    }
  }

  // Turns scores into weights.
  TENON_ON_GPU void soften(float (&scores)[tiles][warp_keys / 8][4], float factor, Running (&running)[tiles][2],
                           float (&sums)[tiles][width / 8][4]) const {
    float shrink[tiles][2];
    bool shrinks = false;
    TENON_UNROLL
    for (int t = 0; t < tiles; ++t) {
      TENON_UNROLL
      for (int half = 0; half < 2; ++half) {
        Running& row = running[t][half];
        float greatest = attention_none;
        TENON_UNROLL
        for (int n = 0; n < warp_keys / 8; ++n)
          greatest = std::fmax(greatest, std::fmax(scores[t][n][2 * half], scores[t][n][2 * half + 1]));
        greatest = std::fmax(greatest, from_lane_across(greatest, 1));
        greatest = std::fmax(greatest, from_lane_across(greatest, 2));
        shrink[t][half] = row.raise(greatest, factor);
        shrinks = shrinks || shrink[t][half] != 1;
        const float base = row.base(factor);
        TENON_UNROLL
        for (int n = 0; n < warp_keys / 8; ++n) {
          TENON_UNROLL
          for (int e = 0; e < 2; ++e) {
            float& score = scores[t][n][2 * half + e];
            score = power_of_two(std::fma(score, factor, -base));
            row.total += score;
          }
        }
      }
    }
    if (!any_of_warp(shrinks)) return;  // the usual case after the first tiles
    TENON_UNROLL
    for (int t = 0; t < tiles; ++t) {
      TENON_UNROLL
      for (int n = 0; n < width / 8; ++n) {
        TENON_UNROLL
        for (int e = 0; e < 4; ++e) sums[t][n][e] *= shrink[t][e / 2];
      }
    }
  }

  // Rescales the sums of the warps that share rows to a common greatest score. Returns the factor.
  TENON_ON_GPU float join(Running* row, int number, float factor) const {
    if constexpr (key_warps == 1) return 1;
    auto* const stats = reinterpret_cast<float*>(queries + key_warps * rows * width * 4);
    if (lane % 4 == 0) {
      stats[2 * (warp * rows + number)] = row->most;
      stats[2 * (warp * rows + number) + 1] = row->total;
    }
    block_meets();
    const Running mine = *row;
    *row = {};
    TENON_UNROLL
    for (int i = 0; i < key_warps; ++i) row->most = std::fmax(row->most, stats[2 * (i * rows + number)]);
    const float base = row->base(factor);
    TENON_UNROLL
    for (int i = 0; i < key_warps; ++i) {
      const float weight = power_of_two(std::fma(stats[2 * (i * rows + number)], factor, -base));
      row->total = std::fma(weight, stats[2 * (i * rows + number) + 1], row->total);
    }
    block_meets();
    return power_of_two(std::fma(mine.most, factor, -base));
  }

  // Finishes the rows of the warp and stores their results in shared memory.
  TENON_ON_GPU void end_rows(const AttentionArguments& a, const AttentionBlock& block, Running (&running)[tiles][2],
                             const float (&sums)[tiles][width / 8][4], float factor) const {
    TENON_UNROLL
    for (int t = 0; t < tiles; ++t) {
      TENON_UNROLL
      for (int half = 0; half < 2; ++half) {
        Running& all = running[t][half];
        all.total += from_lane_across(all.total, 1);
        all.total += from_lane_across(all.total, 2);
        const int row = row_of(t, half);
        const float weight = join(&all, row, factor);
        const float share =
            weight * end_row(a, block, row, all.most * natural_factor(a), all.total, lane % 4 == 0 && first_key == 0);
        const int first_row_of_copy = warp % key_warps * rows;
        TENON_UNROLL
        for (int n = 0; n < width / 8; ++n) {
          auto* const to =
              reinterpret_cast<float*>(chunk_at<4 * width>(queries, first_row_of_copy + row, column_of(n, 0) / 4));
          to[lane % 2 * 2] = sums[t][n][2 * half] * share;
          to[lane % 2 * 2 + 1] = sums[t][n][2 * half + 1] * share;
        }
      }
    }
  }
};

template <class Storage, int width, int tiles, int keys, int key_warps>
TENON_ON_GPU void attention_narrow(const AttentionArguments& a) {
  using Tile = NarrowTile<Storage, width, tiles, keys, key_warps>;
  const Tile tile;
  const AttentionBlock block = attention_block(a, Tile::rows, keys);
  const bool works = tile.first_row < block.rows;
  const float factor = score_factor(a);
  Running running[tiles][2];
  float sums[tiles][width / 8][4] = {};
  float scores[tiles][Tile::warp_keys / 8][4];
  bring_queries<Storage, Tile::row_bytes, Tile::rows>(tile.queries, a, block);
  TENON_ROLLED
  for (int32_t begin = block.keys.first;; begin += keys) {
    if (begin < block.keys.end) bring_keys<Storage, Tile::row_bytes, keys>(tile.keys_tile, a, block, begin);
    if (begin > block.keys.first && works) {
      tile.soften(scores, factor, running, sums);
      tile.multiply_values(scores, sums, a.columns);
    }
    copies_arrive();
    block_meets();
    if (begin >= block.keys.end) break;
    bring_values<Storage, Tile::row_bytes, keys>(tile.values, a, block, begin);
    if (works) {
      TENON_UNROLL
      for (int t = 0; t < tiles; ++t) {
        TENON_UNROLL
        for (int n = 0; n < Tile::warp_keys / 8; ++n) {
          TENON_UNROLL
          for (int e = 0; e < 4; ++e) scores[t][n][e] = 0;
        }
      }
      tile.multiply_keys(scores, a.width);
      tile.finish_scores(a, block, begin, scores);
    }
    copies_arrive();
    block_meets();
  }
  if (works) tile.end_rows(a, block, running, sums, factor);
  block_meets();
  store_rows<width, key_warps, Tile::rows>(a, block, tile.queries);
}

}  // namespace tenon::provider::cuda
