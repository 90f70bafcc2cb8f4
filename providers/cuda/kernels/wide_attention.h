// Attention in f32 arithmetic, of any float: a thread holds products of rows and keys that lie 8 and 16 apart. Shared
// memory has the queries, a tile of keys, whose place the weights take, and a tile of values.
#pragma once

#include "providers/cuda/kernels/attention.h"

namespace tenon::provider::cuda {

template <int width, int rows, int keys>
struct WideTile {
  static constexpr int row_bytes = width * 4;
  static constexpr int weight_bytes = keys * 4;
  static constexpr int mine = rows / 8;      // rows of a thread
  static constexpr int my_keys = keys / 16;  // keys of a thread
  static constexpr int groups = width / 64;  // of four columns of a thread
  static constexpr int bytes = (rows + 2 * keys) * row_bytes;
  static_assert(rows * weight_bytes <= keys * row_bytes, "the weights take the place of the keys");

  using Four = Chunk16<float>;
  unsigned char* const queries = shared_memory();
  unsigned char* const tile = queries + rows * row_bytes;
  unsigned char* const values = tile + keys * row_bytes;
  const int across = static_cast<int>(thread_in_block()) % 16;
  const int down = static_cast<int>(thread_in_block()) / 16;

  template <int bytes_of_row>
  TENON_ON_GPU static Four four(unsigned char* base, int row, int chunk) {
    return *reinterpret_cast<const Four*>(chunk_at<bytes_of_row>(base, row, chunk));
  }

  TENON_ON_GPU void multiply_keys(float (&scores)[mine][my_keys], int chunks) const {
    TENON_UNROLL_2
    for (int c = 0; c < chunks; ++c) {
      Four query[mine];
      TENON_UNROLL
      for (int i = 0; i < mine; ++i) query[i] = four<row_bytes>(queries, down + 8 * i, c);
      TENON_UNROLL
      for (int j = 0; j < my_keys; ++j) {
        const Four key = four<row_bytes>(tile, across + 16 * j, c);
        TENON_UNROLL
        for (int e = 0; e < 4; ++e) {
          TENON_UNROLL
          for (int i = 0; i < mine; ++i) scores[i][j] = std::fma(query[i].at[e], key.at[e], scores[i][j]);
        }
      }
    }
  }
  TENON_ON_GPU void multiply_values(float (&sums)[mine][groups][4]) const {
    TENON_UNROLL_2
    for (int c = 0; c < keys / 4; ++c) {
      Four weight[mine];
      TENON_UNROLL
      for (int i = 0; i < mine; ++i) weight[i] = four<weight_bytes>(tile, down + 8 * i, c);
      TENON_UNROLL
      for (int e = 0; e < 4; ++e) {
        TENON_UNROLL
        for (int g = 0; g < groups; ++g) {
          const Four value = four<row_bytes>(values, 4 * c + e, across + 16 * g);
          TENON_UNROLL
          for (int i = 0; i < mine; ++i) {
            TENON_UNROLL
            for (int z = 0; z < 4; ++z) sums[i][g][z] = std::fma(weight[i].at[e], value.at[z], sums[i][g][z]);
          }
        }
      }
    }
  }
  // Shapes and masks the scores of the keys from `begin` on.
  TENON_ON_GPU void finish_scores(const AttentionArguments& a, const AttentionBlock& block, int32_t begin,
                                  float (&scores)[mine][my_keys]) const {
    const bool whole = begin >= block.whole.first && begin + keys <= block.whole.end;
    if (whole && a.shaped == 0) return;
    TENON_UNROLL
    for (int i = 0; i < mine; ++i) {
      const int row = down + 8 * i;
      const KeyRange range = row < block.rows ? block.keys_of_row(a, row) : KeyRange{0, 0};
      const ShapedScores shaped(a, block, row < block.rows ? row : 0);
      TENON_UNROLL
      for (int j = 0; j < my_keys; ++j) {
        const int32_t key = begin + across + 16 * j;
        if (key < range.first || key >= range.end)
          scores[i][j] = attention_none;
        else if (a.shaped != 0)
          scores[i][j] = shaped.of(scores[i][j], key);
      }
    }
  }
  // Makes weights of the scores and writes them over the keys.
  TENON_ON_GPU void soften(float (&scores)[mine][my_keys], float factor, Running (&running)[mine],
                           float (&sums)[mine][groups][4]) const {
    TENON_UNROLL
    for (int i = 0; i < mine; ++i) {
      float greatest = scores[i][0];
      TENON_UNROLL
      for (int j = 1; j < my_keys; ++j) greatest = std::fmax(greatest, scores[i][j]);
      TENON_UNROLL
      for (int mask = 1; mask < 16; mask *= 2) greatest = std::fmax(greatest, from_lane_across(greatest, mask));
      const float shrink = running[i].raise(greatest, factor);
      const float base = running[i].base(factor);
      TENON_UNROLL
      for (int j = 0; j < my_keys; ++j) {
        const float weight = power_of_two(std::fma(scores[i][j], factor, -base));
        running[i].total += weight;
        const int key = across + 16 * j;
        reinterpret_cast<float*>(chunk_at<weight_bytes>(tile, down + 8 * i, key / 4))[key % 4] = weight;
      }
      TENON_UNROLL
      for (int g = 0; g < groups; ++g) {
        TENON_UNROLL
        for (int z = 0; z < 4; ++z) sums[i][g][z] *= shrink;
      }
    }
  }
};

template <int width, int rows, int keys>
TENON_ON_GPU void attention_wide(const AttentionArguments& a) {
  using Tile = WideTile<width, rows, keys>;
  const Tile tile;
  const AttentionBlock block = attention_block(a, rows, keys);
  const float factor = score_factor(a);
  Running running[Tile::mine];
  float sums[Tile::mine][Tile::groups][4] = {};
  bring_queries<float, Tile::row_bytes, rows>(tile.queries, a, block);
  TENON_ROLLED
  for (int32_t begin = block.keys.first; begin < block.keys.end; begin += keys) {
    bring_keys<float, Tile::row_bytes, keys>(tile.tile, a, block, begin);
    bring_values<float, Tile::row_bytes, keys>(tile.values, a, block, begin);
    copies_arrive();
    block_meets();
    float scores[Tile::mine][Tile::my_keys] = {};
    tile.multiply_keys(scores, (a.width + 3) / 4);
    tile.finish_scores(a, block, begin, scores);
    block_meets();
    tile.soften(scores, factor, running, sums);
    warp_meets();
    tile.multiply_values(sums);
    block_meets();
  }
  TENON_UNROLL
  for (int i = 0; i < Tile::mine; ++i) {
    float total = running[i].total;
    TENON_UNROLL
    for (int mask = 1; mask < 16; mask *= 2) total += from_lane_across(total, mask);
    const int row = tile.down + 8 * i;
    if (row >= block.rows) continue;
    const AttentionResult result(a, block, row, running[i].most * natural_factor(a), total, tile.across == 0);
    TENON_UNROLL
    for (int g = 0; g < Tile::groups; ++g) {
      TENON_UNROLL
      for (int z = 0; z < 4; ++z) {
        const int32_t column = 4 * (tile.across + 16 * g) + z;
        if (column < a.columns) result.set(a, column, sums[i][g][z]);
      }
    }
  }
}

}  // namespace tenon::provider::cuda
