// softmax_<class>_<team> serves rows of any length. softmax_f32_<team>_held serves contiguous rows that fit the
// registers of their team, and reads each row once.
//
// The maximum ignores NaN: a NaN in the row makes the sum NaN, and so every result.
#include "providers/cuda/kernels/held_row.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

template <class Class>
struct Greatest {
  TENON_ON_GPU Class operator()(Class x, Class y) const { return std::fmax(x, y); }
};

struct Least {
  TENON_ON_GPU static float value() { return -std::numeric_limits<float>::infinity(); }
};

// x / total. `inverse` is 1 / total; the remainder corrects the product x * inverse.
template <class Class>
TENON_ON_GPU Class share(Class x, Class total, Class inverse) {
  const Class near = x * inverse;
  return std::fma(std::fma(-near, total, x), inverse, near);
}

// Three passes over a row of any length and stride. The second and third pass mostly find the row in the cache.
template <class Class, class Storage, class Team>
TENON_ON_GPU void softmax_row(const SoftmaxArguments& softmax, Team& team, int64_t row) {
  const auto* src = reinterpret_cast<const Storage*>(softmax.src) + offset_in(softmax.rows, softmax.rows.src, row);
  auto* dst = reinterpret_cast<Storage*>(softmax.dst) + offset_in(softmax.rows, softmax.rows.dst, row);
  const auto at = [&](int64_t i) { return widen<Class>(src[i * softmax.src_stride]); };
  Class greatest = -std::numeric_limits<Class>::infinity();
  TENON_UNROLL_4
  for (int64_t i = team.rank(); i < softmax.length; i += Team::size) greatest = std::fmax(greatest, at(i));
  greatest = team.all(greatest, Greatest<Class>());
  Class total = 0;
  TENON_UNROLL_4
  for (int64_t i = team.rank(); i < softmax.length; i += Team::size) total += scalar::ep_exp(at(i) - greatest);
  total = team.all(total, Sum<Class>());
  const Class inverse = 1 / total;
  const Class log_total = scalar::ep_log(total);
  TENON_ROLLED
  for (int64_t i = team.rank(); i < softmax.length; i += Team::size) {
    const Class shifted = at(i) - greatest;
    const Class value = softmax.log != 0 ? shifted - log_total : share(scalar::ep_exp(shifted), total, inverse);
    dst[i * softmax.dst_stride] = cast<Storage>(value);
  }
}

template <class Class, class Team>
TENON_ON_GPU void softmax_rows(const SoftmaxArguments& softmax) {
  Team team;
  for (int64_t row = team.number(); row < softmax.rows.count; row += team.count()) {
    with_storage<Class>(softmax.dtype,
                        [&](auto storage) { softmax_row<Class, decltype(storage)>(softmax, team, row); });
  }
}

// Each team computes one row. A loop over rows would keep invariants in registers that the row needs.
template <class Team, int chunks>
TENON_ON_GPU void softmax_held(const SoftmaxArguments& softmax) {
  Team team;
  if (const int64_t row = team.number(); row < softmax.rows.count) {
    HeldRow<Team, chunks, Least> held(softmax.length);
    const int64_t from = offset_in(softmax.rows, softmax.rows.src, row);
    with_storage<float>(softmax.dtype, [&](auto storage) {
      const auto* src = reinterpret_cast<const decltype(storage)*>(softmax.src) + from;
      held.load(team, src, softmax.vector != 0);
    });
    float greatest = -std::numeric_limits<float>::infinity();
    held.each([&](float& x) { greatest = std::fmax(greatest, x); });
    greatest = team.all(greatest, Greatest<float>());
    const bool log = softmax.log != 0;
    float total = 0;
    held.each([&](float& x) {
      const float shifted = x - greatest;
      const float power = scalar::ep_exp(shifted);
      total += power;
      x = log ? shifted : power;
    });
    total = team.all(total, Sum<float>());
    if (log) {
      const float log_total = scalar::ep_log(total);
      held.each([&](float& x) { x -= log_total; });
    } else {
      const float inverse = 1 / total;
      held.each([&](float& x) { x = share(x, total, inverse); });
    }
    const int64_t to = offset_in(softmax.rows, softmax.rows.dst, row);
    with_storage<float>(softmax.dtype, [&](auto storage) {
      held.store(team, reinterpret_cast<decltype(storage)*>(softmax.dst) + to, softmax.vector != 0);
    });
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::SoftmaxArguments;

TENON_KERNEL softmax_f32_warp(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<float, kernels::WarpTeam<float>>(softmax);
}
TENON_KERNEL softmax_f32_block(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<float, kernels::BlockTeam<float>>(softmax);
}
TENON_KERNEL softmax_f32_solo(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<float, kernels::SoloTeam<float>>(softmax);
}
TENON_KERNEL softmax_f64_warp(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<double, kernels::WarpTeam<double>>(softmax);
}
TENON_KERNEL softmax_f64_block(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<double, kernels::BlockTeam<double>>(softmax);
}
TENON_KERNEL softmax_f64_solo(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_rows<double, kernels::SoloTeam<double>>(softmax);
}
TENON_TEAM_KERNEL(4) softmax_f32_warp_held(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::WarpTeam<float>, kernels::held_warp_chunks>(softmax);
}
TENON_TEAM_KERNEL(4) softmax_f32_warp_held_long(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::WarpTeam<float>, kernels::held_warp_long_chunks>(softmax);
}
TENON_TEAM_KERNEL(4) softmax_f32_block_held(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::BlockTeam<float>, kernels::held_block_chunks>(softmax);
}
TENON_TEAM_KERNEL(3) softmax_f32_block_held_long(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::BlockTeam<float>, kernels::held_block_long_chunks>(softmax);
}
