// HeldRow: a contiguous row of f32, or of a narrower float, that the threads of a team hold in registers.
#pragma once

#include "providers/cuda/kernels/team.h"

namespace tenon::provider::cuda {

template <class Class>
struct Sum {
  TENON_ON_GPU Class operator()(Class x, Class y) const { return x + y; }
};

// A row of at most `chunks` chunks per thread, held in registers. Elements beyond the end of the row are
// Beyond::value(), which must not change the result.
template <class Team, int chunks, class Beyond>
struct HeldRow {
  float at[chunks][map_chunk];
  int length;
  int used;  // most chunks of any thread

  TENON_ON_GPU explicit HeldRow(int64_t of_length)
      : length(static_cast<int>(of_length)),
        used((length + Team::size * static_cast<int>(map_chunk) - 1) / (Team::size * static_cast<int>(map_chunk))) {}

  TENON_ON_GPU int place(const Team& team, int c) const {
    return (c * Team::size + team.rank()) * static_cast<int>(map_chunk);
  }

  // Calls visit(value) for each element of the used chunks.
  template <class Visit>
  TENON_ON_GPU void each(const Visit& visit) {
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) visit(at[c][j]);
    }
  }

  // Like each(), but only for elements inside the row.
  template <class Visit>
  TENON_ON_GPU void each_inside(const Team& team, const Visit& visit) {
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) {
        if (place(team, c) + j < length) visit(at[c][j]);
      }
    }
  }

  // Loads the row in packs. All loads are issued before the first pack is used.
  template <class Storage>
  TENON_ON_GPU void load_packs(const Team& team, const Storage* src) {
    Pack<Storage, map_chunk> packs[chunks];
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      if (place(team, c) < length) packs[c] = *reinterpret_cast<const Pack<Storage, map_chunk>*>(src + place(team, c));
    }
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      const bool inside = place(team, c) < length;
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) at[c][j] = inside ? widen<float>(packs[c].at[j]) : Beyond::value();
    }
  }
  template <class Storage>
  TENON_ON_GPU void load_elements(const Team& team, const Storage* src) {
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) {
        const int i = place(team, c) + j;
        at[c][j] = i < length ? widen<float>(src[i]) : Beyond::value();
      }
    }
  }
  template <class Storage>
  TENON_ON_GPU void load(const Team& team, const Storage* src, bool vector) {
    if (vector)
      load_packs(team, src);
    else
      load_elements(team, src);
  }
  template <class Storage>
  TENON_ON_GPU void store(const Team& team, Storage* dst, bool vector) const {
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      if (c >= used) break;
      const int rest = length - place(team, c);
      if (rest <= 0) continue;
      store_chunk_as<map_chunk, Storage>(at[c], reinterpret_cast<uint64_t>(dst), place(team, c), 1, vector,
                                         rest < map_chunk ? rest : map_chunk);
    }
  }
};

}  // namespace tenon::provider::cuda
