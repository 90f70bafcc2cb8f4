// Attention in f32 arithmetic, for any float type: a thread computes products of rows and keys that are 8 and 16 apart.
// Shared memory has the queries, a tile of keys, which the weights later overwrite, and a tile of values.
#pragma once

#include "providers/cuda/kernels/attention.h"

namespace tenon::provider::cuda {

template <int width, int rows, int keys>
struct WideTile {
  static constexpr int row_bytes = width * 4;
  static constexpr int weight_bytes = keys * 4;
  static constexpr int mine = rows / 8;      // rows per thread
  static constexpr int my_keys = keys / 16;  // keys per thread
  static constexpr int groups = width / 64;  // groups of four columns per thread
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
    if (a.shaped != 0) {
      // A loop moves each row in turn to the place of the first one, so that the code exists once.
      TENON_ROLLED
      for (int i = 0; i < mine; ++i) {
        const int row = down + 8 * i < block.rows ? down + 8 * i : block.rows - 1;
        const KeyRange range = block.keys_of_row(a, row);
        const ShapedScores shaped(a, block, row);
        float first[my_keys];
        TENON_UNROLL
        for (int j = 0; j < my_keys; ++j) {
          const int32_t key = begin + across + 16 * j;
          first[j] = key < range.first || key >= range.end ? attention_none : shaped.of(scores[0][j], key);
        }
        TENON_UNROLL
        for (int j = 0; j < my_keys; ++j) {
          TENON_UNROLL
          for (int k = 1; k < mine; ++k) scores[k - 1][j] = scores[k][j];
          scores[mine - 1][j] = first[j];
        }
      }
    } else if (!whole) {
      TENON_UNROLL
      for (int i = 0; i < mine; ++i) {
        const KeyRange range = block.keys_of_row(a, down + 8 * i);
        TENON_UNROLL
        for (int j = 0; j < my_keys; ++j) {
          const int32_t key = begin + across + 16 * j;
          if (key < range.first || key >= range.end) scores[i][j] = attention_none;
        }
      }
    }
  }
  // Turns scores into weights and writes them over the keys.
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
  copies_arrive();  // the results overwrite the queries, even if no key was read
  block_meets();
  TENON_UNROLL
  for (int i = 0; i < Tile::mine; ++i) {
    float total = running[i].total;
    TENON_UNROLL
    for (int mask = 1; mask < 16; mask *= 2) total += from_lane_across(total, mask);
    const int row = tile.down + 8 * i;
    const float share = end_row(a, block, row, running[i].most * natural_factor(a), total, tile.across == 0);
    TENON_UNROLL
    for (int g = 0; g < Tile::groups; ++g) {
      typename Tile::Four four;
      TENON_UNROLL
      for (int z = 0; z < 4; ++z) four.at[z] = sums[i][g][z] * share;
      *reinterpret_cast<typename Tile::Four*>(chunk_at<Tile::row_bytes>(tile.queries, row, tile.across + 16 * g)) =
          four;
    }
  }
  block_meets();
  store_rows<width>(a, block, tile.queries);
}

}  // namespace tenon::provider::cuda
