// arg_reduce_<class>_<team>: the position of the greatest or least element of a row. The arguments are those of a
// reduction; `op` is 0 for the least and 1 for the greatest, plus 2 if the last of equal elements wins. Parts hold
// Found values.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

template <class Class>
struct Found {
  Class value;
  int64_t at;  // -1: no element seen
};

// NaN wins over every number.
template <class Class>
struct Better {
  bool greatest;
  bool last;
  TENON_ON_GPU bool operator()(const Found<Class>& x, const Found<Class>& y) const {
    if (x.at < 0 || y.at < 0) return y.at < 0;
    if constexpr (std::is_floating_point_v<Class>) {
      const bool x_nan = x.value != x.value;
      const bool y_nan = y.value != y.value;
      if (x_nan != y_nan) return x_nan;
      if (x_nan) return last == (x.at > y.at);
    }
    if (x.value == y.value) return last == (x.at > y.at);
    return greatest == (x.value > y.value);
  }
};

constexpr int arg_reduce_ahead = 4;  // loads in flight per thread

template <class Class, class Storage>
TENON_ON_GPU Found<Class> find_in_share(const ReduceArguments& reduce, const Better<Class>& better, int64_t base,
                                        int64_t begin, int64_t end, int member, int members) {
  const AxisSet& axes = reduce.reduced;
  const auto* src = reinterpret_cast<const Storage*>(reduce.src) + base;
  Found<Class> best{Class{}, -1};
  int64_t i = begin + member;
  TENON_ROLLED
  for (; i + int64_t{arg_reduce_ahead - 1} * members < end; i += int64_t{arg_reduce_ahead} * members) {
    Storage x[arg_reduce_ahead];
    TENON_UNROLL
    for (int a = 0; a < arg_reduce_ahead; ++a) x[a] = src[offset_in(axes, axes.src, i + int64_t{a} * members)];
    TENON_UNROLL
    for (int a = 0; a < arg_reduce_ahead; ++a) {
      const Found<Class> next{widen<Class>(x[a]), i + int64_t{a} * members};
      if (better(next, best)) best = next;
    }
  }
  TENON_ROLLED
  for (; i < end; i += members) {
    const Found<Class> next{widen<Class>(src[offset_in(axes, axes.src, i)]), i};
    if (better(next, best)) best = next;
  }
  return best;
}

template <class Class, class Team>
TENON_ON_GPU void arg_reduce(const ReduceArguments& reduce) {
  const Better<Class> better{(reduce.op & 1) != 0, (reduce.op & 2) != 0};
  Team team;
  const int64_t jobs = reduce.kept.count * reduce.parts;
  for (int64_t job = team.number(); job < jobs; job += team.count()) {
    const int64_t output = reduce.parts == 1 ? job : quotient(job, reduce.parts);
    const int64_t begin = (job - output * reduce.parts) * reduce.part_length;
    const int64_t end =
        reduce.reduced.count - begin < reduce.part_length ? reduce.reduced.count : begin + reduce.part_length;
    const int64_t base = offset_in(reduce.kept, reduce.kept.src, output);
    Found<Class> best{Class{}, -1};
    if (reduce.second != 0) {
      const auto* parts = reinterpret_cast<const Found<Class>*>(reduce.src) + base;
      TENON_ROLLED
      for (int64_t i = begin + team.rank(); i < end; i += Team::size) {
        if (better(parts[i], best)) best = parts[i];
      }
    } else {
      with_storage<Class>(reduce.src_dtype, [&](auto storage) {
        best = find_in_share<Class, decltype(storage)>(reduce, better, base, begin, end, team.rank(), Team::size);
      });
    }
    best = team.first(best, [&](const Found<Class>& x, const Found<Class>& y) { return better(x, y) ? x : y; });
    if (team.rank() != 0) continue;
    if (reduce.parts > 1)
      reinterpret_cast<Found<Class>*>(reduce.dst)[job] = best;
    else
      reinterpret_cast<int64_t*>(reduce.dst)[offset_in(reduce.kept, reduce.kept.dst, output)] = best.at;
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::ReduceArguments;

#define TENON_ARG_REDUCE(type, Class)                                                      \
  TENON_TEAM_KERNEL(3) arg_reduce_##type##_warp(TENON_ARGUMENT(ReduceArguments) reduce) {  \
    kernels::arg_reduce<Class, kernels::WarpTeam<kernels::Found<Class>>>(reduce);          \
  }                                                                                        \
  TENON_TEAM_KERNEL(3) arg_reduce_##type##_block(TENON_ARGUMENT(ReduceArguments) reduce) { \
    kernels::arg_reduce<Class, kernels::BlockTeam<kernels::Found<Class>>>(reduce);         \
  }                                                                                        \
  TENON_TEAM_KERNEL(3) arg_reduce_##type##_solo(TENON_ARGUMENT(ReduceArguments) reduce) {  \
    kernels::arg_reduce<Class, kernels::SoloTeam<kernels::Found<Class>>>(reduce);          \
  }
TENON_ARG_REDUCE(f32, float)
TENON_ARG_REDUCE(f64, double)
TENON_ARG_REDUCE(i64, int64_t)
TENON_ARG_REDUCE(u64, uint64_t)
TENON_ARG_REDUCE(bool, bool)
