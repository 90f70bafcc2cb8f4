// norm_sums_<class>_<team> sums parts of the elements that share a parameter, and norm_sums_totals_<class>_warp adds
// the parts up. norm_sums_moments_<class>_<team> and norm_sums_variance_<class>_warp compute mean and variance in the
// same way. layer_backward_<class>_<team> computes the gradient of a row, batch_backward_<class> the gradient of an
// element.
#include "providers/cuda/kernels/map.h"
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

template <class Class>
struct NormPair {
  Class first;
  Class second;
};
template <class Class>
struct SumOfPairs {
  TENON_ON_GPU NormPair<Class> operator()(const NormPair<Class>& x, const NormPair<Class>& y) const {
    return {x.first + y.first, x.second + y.second};
  }
};

// Mean and inverse deviation at index `i`.
template <class Class>
TENON_ON_GPU NormPair<Class> statistics_of(const NormSumsArguments& norm, int64_t i) {
  return {reinterpret_cast<const Class*>(norm.mean)[offset_in(norm.statistics, norm.statistics.src, i)],
          reinterpret_cast<const Class*>(norm.inv_std)[offset_in(norm.statistics, norm.statistics.dst, i)]};
}

// Calls part(parameter, begin, end) for each part of this team, and stores the pair that thread 0 gets.
template <class Class, class Team, class Part>
TENON_ON_GPU void for_each_part(const NormSumsArguments& norm, const Team& team, const Part& part) {
  TENON_ROLLED
  for (int64_t job = team.number(); job < norm.kept.count * norm.parts; job += team.count()) {
    const int64_t parameter = norm.parts == 1 ? job : quotient(job, norm.parts);
    const int64_t begin = (job - parameter * norm.parts) * norm.part_length;
    const int64_t end = norm.reduced.count - begin < norm.part_length ? norm.reduced.count : begin + norm.part_length;
    const NormPair<Class> pair = part(parameter, begin, end);
    if (team.rank() == 0) reinterpret_cast<NormPair<Class>*>(norm.sums)[job] = pair;
  }
}

template <class Class, class Storage, class Team>
TENON_ON_GPU void sum_parts(const NormSumsArguments& norm) {
  Team team;
  for_each_part<Class>(norm, team, [&](int64_t parameter, int64_t begin, int64_t end) {
    const auto* src = reinterpret_cast<const Storage*>(norm.src) + offset_in(norm.kept, norm.kept.src, parameter);
    const auto* gradient =
        reinterpret_cast<const Storage*>(norm.gradient) + offset_in(norm.kept, norm.kept.dst, parameter);
    NormPair<Class> sum{0, 0};
    NormPair<Class> of{0, 0};
    if (norm.by_parameter != 0) of = statistics_of<Class>(norm, parameter);
    TENON_UNROLL_4
    for (int64_t i = begin + team.rank(); i < end; i += Team::size) {
      if (norm.by_parameter == 0) of = statistics_of<Class>(norm, i);
      const auto x = widen<Class>(src[offset_in(norm.reduced, norm.reduced.src, i)]);
      const auto g = widen<Class>(gradient[offset_in(norm.reduced, norm.reduced.dst, i)]);
      sum.first += g;
      sum.second += g * ((x - of.first) * of.second);
    }
    return team.first(sum, SumOfPairs<Class>());
  });
}

// The variance is computed from differences from the mean, which loses no digits if the mean is large.
template <class Class, class Storage, class Team>
TENON_ON_GPU void moments_of_parts(const NormSumsArguments& norm) {
  Team team;
  for_each_part<Class>(norm, team, [&](int64_t parameter, int64_t begin, int64_t end) {
    const auto* src = reinterpret_cast<const Storage*>(norm.src) + offset_in(norm.kept, norm.kept.src, parameter);
    const auto at = [&](int64_t i) { return widen<Class>(src[offset_in(norm.reduced, norm.reduced.src, i)]); };
    NormPair<Class> sum{0, 0};
    TENON_UNROLL_4
    for (int64_t i = begin + team.rank(); i < end; i += Team::size) sum.first += at(i);
    const Class mean = team.all(sum, SumOfPairs<Class>()).first / static_cast<Class>(end - begin);
    sum = {0, 0};
    TENON_UNROLL_4
    for (int64_t i = begin + team.rank(); i < end; i += Team::size) {
      const Class x = at(i) - mean;
      sum.second += x * x;
    }
    return NormPair<Class>{mean, team.first(sum, SumOfPairs<Class>()).second};
  });
}

template <class Class>
TENON_ON_GPU void add_parts(const NormSumsArguments& norm) {
  WarpTeam<NormPair<Class>> team;
  const auto* sums = reinterpret_cast<const NormPair<Class>*>(norm.sums);
  TENON_ROLLED
  for (int64_t parameter = team.number(); parameter < norm.kept.count; parameter += team.count()) {
    NormPair<Class> sum{0, 0};
    TENON_ROLLED
    for (int64_t part = team.rank(); part < norm.parts; part += team.size)
      sum = SumOfPairs<Class>()(sum, sums[parameter * norm.parts + part]);
    sum = team.first(sum, SumOfPairs<Class>());
    if (team.rank() != 0) continue;
    const auto count = static_cast<Class>(norm.reduced.count);
    if (norm.totals != 0)
      reinterpret_cast<NormPair<Class>*>(norm.totals)[parameter] = {sum.first / count, sum.second / count};
    const AxisSet& to = norm.parameters;
    if (norm.scale_gradient != 0)
      store<Class>(norm.scale_gradient, offset_in(to, to.src, parameter), norm.scale_dtype, sum.second);
    if (norm.shift_gradient != 0)
      store<Class>(norm.shift_gradient, offset_in(to, to.dst, parameter), norm.shift_dtype, sum.first);
  }
}

// T. F. Chan, G. H. Golub, R. J. LeVeque: Updating formulae and a pairwise algorithm for computing sample variances
// (1979).
template <class Class>
TENON_ON_GPU void add_moments(const NormSumsArguments& norm) {
  WarpTeam<NormPair<Class>> team;
  const auto all = static_cast<Class>(norm.reduced.count);
  const auto share = [&](int64_t part) {
    const int64_t rest = norm.reduced.count - part * norm.part_length;
    return static_cast<Class>(rest < norm.part_length ? rest : norm.part_length);
  };
  TENON_ROLLED
  for (int64_t parameter = team.number(); parameter < norm.kept.count; parameter += team.count()) {
    const auto* parts = reinterpret_cast<const NormPair<Class>*>(norm.sums) + parameter * norm.parts;
    NormPair<Class> sum{0, 0};
    TENON_ROLLED
    for (int64_t part = team.rank(); part < norm.parts; part += team.size)
      sum.first += share(part) / all * parts[part].first;
    const Class mean = team.all(sum, SumOfPairs<Class>()).first;
    sum = {0, 0};
    TENON_ROLLED
    for (int64_t part = team.rank(); part < norm.parts; part += team.size) {
      const Class distance = parts[part].first - mean;
      sum.second += parts[part].second + share(part) * distance * distance;
    }
    const Class variance = team.first(sum, SumOfPairs<Class>()).second / all;
    if (team.rank() != 0) continue;
    const AxisSet& to = norm.statistics;
    reinterpret_cast<Class*>(norm.totals)[parameter] = variance;
    reinterpret_cast<Class*>(norm.mean)[offset_in(to, to.src, parameter)] = mean;
    reinterpret_cast<Class*>(norm.inv_std)[offset_in(to, to.dst, parameter)] =
        1 / std::sqrt(variance + static_cast<Class>(norm.eps));
  }
}

template <class Class, class Storage, class Team>
TENON_ON_GPU void layer_backward(const LayerBackwardArguments& norm) {
  Team team;
  const int64_t length = norm.row.count;
  TENON_ROLLED
  for (int64_t row = team.number(); row < norm.rows.count; row += team.count()) {
    const auto* src = reinterpret_cast<const Storage*>(norm.src) + offset_in(norm.rows, norm.rows.src, row);
    const auto* gradient = reinterpret_cast<const Storage*>(norm.gradient) + offset_in(norm.rows, norm.rows.dst, row);
    auto* dst = reinterpret_cast<Storage*>(norm.dst) + offset_in(norm.dst_rows, norm.dst_rows.dst, row);
    const Class mean = reinterpret_cast<const Class*>(norm.mean)[offset_in(norm.statistics, norm.statistics.src, row)];
    const Class inv_std =
        reinterpret_cast<const Class*>(norm.inv_std)[offset_in(norm.statistics, norm.statistics.dst, row)];
    const auto x_at = [&](int64_t i) {
      return (widen<Class>(src[offset_in(norm.row, norm.row.src, i)]) - mean) * inv_std;
    };
    const auto g_at = [&](int64_t i) {
      const auto g = widen<Class>(gradient[offset_in(norm.row, norm.row.dst, i)]);
      if (norm.scale == 0) return g;
      return g * load<Class>(norm.scale, offset_in(norm.weights, norm.weights.src, i), norm.scale_dtype);
    };
    NormPair<Class> sum{0, 0};
    TENON_UNROLL_4
    for (int64_t i = team.rank(); i < length; i += Team::size) {
      const Class g = g_at(i);
      sum.first += g;
      sum.second += g * x_at(i);
    }
    sum = team.all(sum, SumOfPairs<Class>());
    const Class middle = sum.first / static_cast<Class>(length);
    const Class slope = sum.second / static_cast<Class>(length);
    TENON_UNROLL_4
    for (int64_t i = team.rank(); i < length; i += Team::size)
      dst[offset_in(norm.dst_row, norm.dst_row.dst, i)] = cast<Storage>(inv_std * (g_at(i) - middle - x_at(i) * slope));
  }
}

// The parameters of one channel.
template <class Class>
struct BackwardChannel {
  Class mean;
  Class inv_std;
  Class factor;
  NormPair<Class> totals;

  TENON_ON_GPU BackwardChannel(const BatchBackwardArguments& norm, int64_t channel) {
    mean = reinterpret_cast<const Class*>(norm.mean)[channel * norm.mean_stride];
    inv_std = reinterpret_cast<const Class*>(norm.inv_std)[channel * norm.inv_std_stride];
    totals = reinterpret_cast<const NormPair<Class>*>(norm.totals)[channel];
    factor = inv_std;
    if (norm.scale != 0) factor *= load<Class>(norm.scale, channel * norm.scale_stride, norm.scale_dtype);
  }
  TENON_ON_GPU Class of(Class x, Class g) const {
    return factor * (g - totals.first - (x - mean) * inv_std * totals.second);
  }
};

template <class Class>
TENON_ON_GPU void batch_backward(const BatchBackwardArguments& norm) {
  const MapArguments& map = norm.map;
  const int64_t step = map.operands[3].strides[map.rank - 1];
  for_each_chunk<4, map_chunk>(map, [&](const MapPlace& place) {
    Class x[map_chunk] = {};
    Class g[map_chunk] = {};
    load_operand<Class, map_chunk>(x, map, 1, place);
    load_operand<Class, map_chunk>(g, map, 2, place);
    const int64_t first = static_cast<int64_t>(map.operands[3].address) + place.offsets[3];
    if (step == 0) {
      const BackwardChannel<Class> channel(norm, first);
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) x[i] = channel.of(x[i], g[i]);
    } else {
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        if (i < place.count) x[i] = BackwardChannel<Class>(norm, first + i * step).of(x[i], g[i]);
      }
    }
    store_result<Class, map_chunk>(x, map, place);
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::BatchBackwardArguments;
using kernels::LayerBackwardArguments;
using kernels::NormSumsArguments;

#define TENON_NORM_SUMS(type, Class, team, Team)                                                          \
  TENON_TEAM_KERNEL(2) norm_sums_##type##_##team(TENON_ARGUMENT(NormSumsArguments) norm) {                \
    kernels::with_storage<Class>(norm.dtype, [&](auto storage) {                                          \
      kernels::sum_parts<Class, decltype(storage), kernels::Team<kernels::NormPair<Class>>>(norm);        \
    });                                                                                                   \
  }                                                                                                       \
  TENON_TEAM_KERNEL(2) norm_sums_moments_##type##_##team(TENON_ARGUMENT(NormSumsArguments) norm) {        \
    kernels::with_storage<Class>(norm.dtype, [&](auto storage) {                                          \
      kernels::moments_of_parts<Class, decltype(storage), kernels::Team<kernels::NormPair<Class>>>(norm); \
    });                                                                                                   \
  }
#define TENON_LAYER_BACKWARD(type, Class, team, Team)                                                   \
  TENON_TEAM_KERNEL(3) layer_backward_##type##_##team(TENON_ARGUMENT(LayerBackwardArguments) norm) {    \
    kernels::with_storage<Class>(norm.dtype, [&](auto storage) {                                        \
      kernels::layer_backward<Class, decltype(storage), kernels::Team<kernels::NormPair<Class>>>(norm); \
    });                                                                                                 \
  }
#define TENON_NORM_BACKWARD(type, Class)                                                          \
  TENON_NORM_SUMS(type, Class, solo, SoloTeam)                                                    \
  TENON_NORM_SUMS(type, Class, block, BlockTeam)                                                  \
  TENON_LAYER_BACKWARD(type, Class, warp, WarpTeam)                                               \
  TENON_LAYER_BACKWARD(type, Class, block, BlockTeam)                                             \
  TENON_TEAM_KERNEL(3) norm_sums_totals_##type##_warp(TENON_ARGUMENT(NormSumsArguments) norm) {   \
    kernels::add_parts<Class>(norm);                                                              \
  }                                                                                               \
  TENON_TEAM_KERNEL(3) norm_sums_variance_##type##_warp(TENON_ARGUMENT(NormSumsArguments) norm) { \
    kernels::add_moments<Class>(norm);                                                            \
  }                                                                                               \
  TENON_KERNEL batch_backward_##type(TENON_ARGUMENT(BatchBackwardArguments) norm) {               \
    kernels::batch_backward<Class>(norm);                                                         \
  }
TENON_NORM_BACKWARD(f32, float)
TENON_NORM_BACKWARD(f64, double)
