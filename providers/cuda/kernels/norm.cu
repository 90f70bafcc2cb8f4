// norm_<class>_<team> serves rows of any length and stride. norm_f32_<team>_held serves contiguous rows that fit the
// registers of their team, and reads each row once. Longer contiguous rows are cut into parts: norm_f32_block_moments
// writes the mean and the squares of each part; norm_f32_block_parts combines them and normalises the part.
// batch_norm_<class> computes one element per number of a chunk.
//
// The variance is computed from differences from the mean, which loses no digits if the mean is large.
#include "providers/cuda/kernels/held_row.h"
#include "providers/cuda/kernels/map.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

// Stores the statistics of row `row`.
template <class Class>
TENON_ON_GPU void store_statistics(const NormArguments& norm, int64_t row, Class mean, Class inv_std) {
  if (norm.mean != 0) reinterpret_cast<Class*>(norm.mean)[offset_in(norm.statistics, norm.statistics.src, row)] = mean;
  if (norm.inv_std != 0)
    reinterpret_cast<Class*>(norm.inv_std)[offset_in(norm.statistics, norm.statistics.dst, row)] = inv_std;
}

template <class Class>
TENON_ON_GPU Class inverse_deviation(const NormArguments& norm, Class squares) {
  return 1 / std::sqrt(squares / static_cast<Class>(norm.row.count) + static_cast<Class>(norm.eps));
}

// Three passes over a row of any length and stride. The second and third pass mostly find the row in the cache.
template <class Class, class Storage, class Team>
TENON_ON_GPU void norm_row(const NormArguments& norm, Team& team, int64_t row) {
  const auto* src = reinterpret_cast<const Storage*>(norm.src) + offset_in(norm.rows, norm.rows.src, row);
  auto* dst = reinterpret_cast<Storage*>(norm.dst) + offset_in(norm.rows, norm.rows.dst, row);
  const int64_t scales = offset_in(norm.row_weights, norm.row_weights.src, row);
  const int64_t shifts = offset_in(norm.row_weights, norm.row_weights.dst, row);
  const int64_t length = norm.row.count;
  const auto at = [&](int64_t i) { return widen<Class>(src[offset_in(norm.row, norm.row.src, i)]); };
  Class mean = 0;
  if (norm.centred != 0) {
    TENON_UNROLL_4
    for (int64_t i = team.rank(); i < length; i += Team::size) mean += at(i);
    mean = team.all(mean, Sum<Class>()) / static_cast<Class>(length);
  }
  Class squares = 0;
  TENON_UNROLL_4
  for (int64_t i = team.rank(); i < length; i += Team::size) {
    const Class x = at(i) - mean;
    squares += x * x;
  }
  const Class inv_std = inverse_deviation(norm, team.all(squares, Sum<Class>()));
  if (team.rank() == 0) store_statistics(norm, row, mean, inv_std);
  TENON_ROLLED
  for (int64_t i = team.rank(); i < length; i += Team::size) {
    Class x = (at(i) - mean) * inv_std;
    if (norm.scale != 0)
      x *= load<Class>(norm.scale, scales + offset_in(norm.weights, norm.weights.src, i), norm.scale_dtype);
    if (norm.shift != 0)
      x += load<Class>(norm.shift, shifts + offset_in(norm.weights, norm.weights.dst, i), norm.shift_dtype);
    dst[offset_in(norm.row, norm.row.dst, i)] = cast<Storage>(x);
  }
}

template <class Class, class Team>
TENON_ON_GPU void norm_rows(const NormArguments& norm) {
  Team team;
  for (int64_t row = team.number(); row < norm.rows.count; row += team.count()) {
    with_storage<Class>(norm.dtype, [&](auto storage) { norm_row<Class, decltype(storage)>(norm, team, row); });
  }
}

struct Nothing {
  TENON_ON_GPU static float value() { return 0; }
};

// Loads the weights of the chunk at `place` of a row. `run` consecutive elements share a weight.
TENON_ON_GPU void load_weights(float* values, uint64_t address, int32_t dtype, uint32_t run, int64_t stride, int place,
                               bool vector, int64_t count) {
  with_storage<float>(dtype, [&](auto storage) {
    using Storage = decltype(storage);
    if (run == 1) {
      load_chunk_as<map_chunk, Storage>(values, address, place * stride, stride, vector, count);
    } else {
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) {
        const auto at = static_cast<int64_t>(static_cast<uint32_t>(place + j) / run);
        if (j < count) values[j] = widen<float>(reinterpret_cast<const Storage*>(address)[at * stride]);
      }
    }
  });
}

// Scales and shifts the held elements, which begin at `first` of a row; the row's weights are at `scales` and `shifts`.
template <class Team, int chunks>
TENON_ON_GPU void weigh(const NormArguments& norm, const Team& team, HeldRow<Team, chunks, Nothing>& held,
                        uint64_t scales, uint64_t shifts, int first, float inv_std) {
  const bool vector = norm.weights_vector != 0;
  TENON_UNROLL
  for (int c = 0; c < chunks; ++c) {
    if (c >= held.used) break;
    const int rest = held.length - held.place(team, c);
    if (rest <= 0) continue;
    const int place = first + held.place(team, c);
    const int count = rest < map_chunk ? rest : static_cast<int>(map_chunk);
    float weights[map_chunk] = {1, 1, 1, 1};
    if (norm.scale != 0)
      load_weights(weights, scales, norm.scale_dtype, norm.run, norm.weights.src[0], place, vector, count);
    TENON_UNROLL
    for (int j = 0; j < map_chunk; ++j) held.at[c][j] *= inv_std * weights[j];
    if (norm.shift == 0) continue;
    load_weights(weights, shifts, norm.shift_dtype, norm.run, norm.weights.dst[0], place, vector, count);
    TENON_UNROLL
    for (int j = 0; j < map_chunk; ++j) held.at[c][j] += weights[j];
  }
}

// Each team computes one row. All offsets are computed before the row is held, since a call would spill it from
// registers.
template <class Team, int chunks>
TENON_ON_GPU void norm_held(const NormArguments& norm) {
  Team team;
  const int64_t row = team.number();
  if (row >= norm.rows.count) return;
  const int64_t from = offset_in(norm.rows, norm.rows.src, row);
  const int64_t to = offset_in(norm.rows, norm.rows.dst, row);
  const uint64_t scales = norm.scale + offset_in(norm.row_weights, norm.row_weights.src, row) * norm.scale_size;
  const uint64_t shifts = norm.shift + offset_in(norm.row_weights, norm.row_weights.dst, row) * norm.shift_size;
  HeldRow<Team, chunks, Nothing> held(norm.row.count);
  with_storage<float>(norm.dtype, [&](auto storage) {
    held.load(team, reinterpret_cast<const decltype(storage)*>(norm.src) + from, norm.vector != 0);
  });
  float mean = 0;
  if (norm.centred != 0) {
    held.each([&](float& x) { mean += x; });
    mean = team.all(mean, Sum<float>()) / static_cast<float>(held.length);
    held.each_inside(team, [&](float& x) { x -= mean; });
  }
  float squares = 0;
  held.each([&](float& x) { squares += x * x; });
  const float inv_std = inverse_deviation(norm, team.all(squares, Sum<float>()));
  weigh(norm, team, held, scales, shifts, 0, inv_std);
  with_storage<float>(norm.dtype, [&](auto storage) {
    held.store(team, reinterpret_cast<decltype(storage)*>(norm.dst) + to, norm.vector != 0);
  });
  if (team.rank() == 0) store_statistics(norm, row, mean, inv_std);
}

// Mean of some elements, and the sum of squared differences from it. If the norm is not centred, the mean is 0.
struct Moments {
  float mean;
  float squares;
};

// The part of a row that a block computes. Offsets are computed before anything is held.
struct RowPart {
  int64_t row;
  int64_t part;
  int64_t begin;  // position in the row
  int64_t end;

  TENON_ON_GPU RowPart(const NormArguments& norm, int64_t number) {
    row = quotient(number, norm.parts);
    part = number - row * norm.parts;
    begin = part * norm.part_length;
    end = begin + norm.part_length < norm.row.count ? begin + norm.part_length : norm.row.count;
  }
  TENON_ON_GPU float count() const { return static_cast<float>(end - begin); }
};

constexpr int64_t held_part = held_block_chunks * map_chunk * row_block;

using HeldPart = HeldRow<BlockTeam<float>, held_block_chunks, Nothing>;

// Holds the elements of a row from `begin` on; `row_at` is the offset of the row.
TENON_ON_GPU void hold(HeldPart& held, const NormArguments& norm, const BlockTeam<float>& team, int64_t row_at,
                       int64_t begin) {
  with_storage<float>(norm.dtype, [&](auto storage) {
    held.load(team, reinterpret_cast<const decltype(storage)*>(norm.src) + row_at + begin, norm.vector != 0);
  });
}

TENON_ON_GPU int64_t held_length(int64_t begin, int64_t end) {
  return end - begin < held_part ? end - begin : held_part;
}

// Combines two sets of elements as in Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.
TENON_ON_GPU void norm_moments(const NormArguments& norm) {
  BlockTeam<float> team;
  const RowPart of(norm, team.number());
  if (of.row >= norm.rows.count) return;
  const int64_t row_at = offset_in(norm.rows, norm.rows.src, of.row);
  Moments all = {0, 0};
  float seen = 0;
  for (int64_t begin = of.begin; begin < of.end; begin += held_part) {
    HeldPart held(held_length(begin, of.end));
    hold(held, norm, team, row_at, begin);
    const auto count = static_cast<float>(held.length);
    float mean = 0;
    if (norm.centred != 0) {
      held.each([&](float& x) { mean += x; });
      mean = team.all(mean, Sum<float>()) / count;
      held.each_inside(team, [&](float& x) { x -= mean; });
    }
    float squares = 0;
    held.each([&](float& x) { squares += x * x; });
    squares = team.all(squares, Sum<float>());
    const float step = mean - all.mean;
    const float share = count / (seen + count);
    all.mean += step * share;
    all.squares += squares + step * step * seen * share;
    seen += count;
  }
  if (team.rank() == 0) reinterpret_cast<Moments*>(norm.moments)[of.row * norm.parts + of.part] = all;
}

// The moments of a whole row, returned to every thread.
TENON_ON_GPU Moments row_moments(const NormArguments& norm, BlockTeam<float>& team, int64_t row) {
  const auto* parts = reinterpret_cast<const Moments*>(norm.moments) + row * norm.parts;
  const auto share = [&](int64_t part) {
    return RowPart(norm, row * norm.parts + part).count() / static_cast<float>(norm.row.count);
  };
  Moments all = {0, 0};
  for (int64_t i = team.rank(); i < norm.parts; i += BlockTeam<float>::size) all.mean += parts[i].mean * share(i);
  all.mean = team.all(all.mean, Sum<float>());
  for (int64_t i = team.rank(); i < norm.parts; i += BlockTeam<float>::size) {
    const float step = parts[i].mean - all.mean;
    all.squares += parts[i].squares + step * step * RowPart(norm, row * norm.parts + i).count();
  }
  all.squares = team.all(all.squares, Sum<float>());
  return all;
}

TENON_ON_GPU void norm_parts(const NormArguments& norm) {
  BlockTeam<float> team;
  const RowPart of(norm, team.number());
  if (of.row >= norm.rows.count) return;
  const int64_t from = offset_in(norm.rows, norm.rows.src, of.row);
  const int64_t to = offset_in(norm.rows, norm.rows.dst, of.row);
  const uint64_t scales = norm.scale + offset_in(norm.row_weights, norm.row_weights.src, of.row) * norm.scale_size;
  const uint64_t shifts = norm.shift + offset_in(norm.row_weights, norm.row_weights.dst, of.row) * norm.shift_size;
  const Moments all = row_moments(norm, team, of.row);
  const float inv_std = inverse_deviation(norm, all.squares);
  if (team.rank() == 0 && of.part == 0) store_statistics(norm, of.row, all.mean, inv_std);
  for (int64_t begin = of.begin; begin < of.end; begin += held_part) {
    HeldPart held(held_length(begin, of.end));
    hold(held, norm, team, from, begin);
    held.each([&](float& x) { x -= all.mean; });
    weigh(norm, team, held, scales, shifts, static_cast<int>(begin), inv_std);
    with_storage<float>(norm.dtype, [&](auto storage) {
      held.store(team, reinterpret_cast<decltype(storage)*>(norm.dst) + to + begin, norm.vector != 0);
    });
  }
}

// The parameters of one channel.
template <class Class>
struct Channel {
  Class mean;
  Class inv_std;
  Class scale;
  Class shift;

  TENON_ON_GPU Channel(const BatchNormArguments& norm, int64_t channel) {
    const auto number = [&](int which, Class without) {
      if (norm.addresses[which] == 0) return without;
      return load<Class>(norm.addresses[which], channel * norm.strides[which], norm.dtypes[which]);
    };
    scale = number(0, 1);
    shift = number(1, 0);
    mean = number(2, 0);
    inv_std = 1 / std::sqrt(number(3, 1) + static_cast<Class>(norm.eps));
  }
  TENON_ON_GPU Class of(Class x) const { return (x - mean) * inv_std * scale + shift; }
};

template <class Class>
TENON_ON_GPU void batch_norm(const BatchNormArguments& norm) {
  const MapArguments& map = norm.map;
  const int64_t step = map.operands[2].strides[map.rank - 1];
  for_each_chunk<3, map_chunk>(map, [&](const MapPlace& place) {
    Class x[map_chunk] = {};
    load_operand<Class, map_chunk>(x, map, 1, place);
    const int64_t first = static_cast<int64_t>(map.operands[2].address) + place.offsets[2];
    if (step == 0) {
      const Channel<Class> channel(norm, first);
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) x[i] = channel.of(x[i]);
    } else {
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        if (i < place.count) x[i] = Channel<Class>(norm, first + i * step).of(x[i]);
      }
    }
    store_result<Class, map_chunk>(x, map, place);
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::BatchNormArguments;
using kernels::NormArguments;

TENON_TEAM_KERNEL(3) norm_f32_warp(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_rows<float, kernels::WarpTeam<float>>(norm);
}
TENON_TEAM_KERNEL(3) norm_f32_block(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_rows<float, kernels::BlockTeam<float>>(norm);
}
TENON_TEAM_KERNEL(3) norm_f64_warp(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_rows<double, kernels::WarpTeam<double>>(norm);
}
TENON_TEAM_KERNEL(3) norm_f64_block(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_rows<double, kernels::BlockTeam<double>>(norm);
}
TENON_TEAM_KERNEL(4) norm_f32_warp_held(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_held<kernels::WarpTeam<float>, kernels::held_warp_chunks>(norm);
}
TENON_TEAM_KERNEL(3) norm_f32_warp_held_long(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_held<kernels::WarpTeam<float>, kernels::held_warp_long_chunks>(norm);
}
TENON_TEAM_KERNEL(4) norm_f32_block_held(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_held<kernels::BlockTeam<float>, kernels::held_block_chunks>(norm);
}
TENON_TEAM_KERNEL(2) norm_f32_block_held_long(TENON_ARGUMENT(NormArguments) norm) {
  kernels::norm_held<kernels::BlockTeam<float>, kernels::held_block_long_chunks>(norm);
}
TENON_TEAM_KERNEL(4) norm_f32_block_moments(TENON_ARGUMENT(NormArguments) norm) { kernels::norm_moments(norm); }
TENON_TEAM_KERNEL(4) norm_f32_block_parts(TENON_ARGUMENT(NormArguments) norm) { kernels::norm_parts(norm); }
TENON_KERNEL batch_norm_f32(TENON_ARGUMENT(BatchNormArguments) norm) { kernels::batch_norm<float>(norm); }
TENON_KERNEL batch_norm_f64(TENON_ARGUMENT(BatchNormArguments) norm) { kernels::batch_norm<double>(norm); }
