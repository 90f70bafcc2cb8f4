// softmax_<class>_<team> for rows of any length, and softmax_f32_<team>_held for contiguous rows that fit the registers
// of their team: those are read once.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

template <class Class>
struct Greatest {
  TENON_DEVICE Class operator()(Class x, Class y) const { return scalar::ep_max(x, y); }
};
template <class Class>
struct Sum {
  TENON_DEVICE Class operator()(Class x, Class y) const { return x + y; }
};

template <class Class>
TENON_DEVICE Class softmax_value(Class x, Class greatest, Class total, Class log_total, bool log) {
  return log ? x - greatest - log_total : scalar::ep_exp(x - greatest) / total;
}

// Three passes over a row of any length and stride; the second and third find it in the cache, mostly.
template <class Class, class Team>
TENON_DEVICE void softmax_rows(const SoftmaxArguments& softmax) {
  Team team;
  for (int64_t row = team.number(); row < softmax.rows.count; row += team.count()) {
    const int64_t src = offset_in(softmax.rows, softmax.rows.src, row);
    const int64_t dst = offset_in(softmax.rows, softmax.rows.dst, row);
    const auto at = [&](int64_t i) { return load<Class>(softmax.src, src + i * softmax.src_stride, softmax.dtype); };
    Class greatest = -std::numeric_limits<Class>::infinity();
    TENON_ROLLED
    for (int64_t i = team.rank(); i < softmax.length; i += Team::size) greatest = scalar::ep_max(greatest, at(i));
    greatest = team.all(greatest, Greatest<Class>());
    Class total = 0;
    TENON_ROLLED
    for (int64_t i = team.rank(); i < softmax.length; i += Team::size) total += scalar::ep_exp(at(i) - greatest);
    total = team.all(total, Sum<Class>());
    const Class log_total = scalar::ep_log(total);
    TENON_ROLLED
    for (int64_t i = team.rank(); i < softmax.length; i += Team::size) {
      store(softmax.dst, dst + i * softmax.dst_stride, softmax.dtype,
            softmax_value(at(i), greatest, total, log_total, softmax.log != 0));
    }
  }
}

// Rows of at most `chunks` chunks per member, held in registers.
template <class Team, int chunks>
TENON_DEVICE void softmax_held(const SoftmaxArguments& softmax) {
  Team team;
  constexpr float least = -std::numeric_limits<float>::infinity();
  for (int64_t row = team.number(); row < softmax.rows.count; row += team.count()) {
    const int64_t src = offset_in(softmax.rows, softmax.rows.src, row);
    const int64_t dst = offset_in(softmax.rows, softmax.rows.dst, row);
    float x[chunks][map_chunk];
    const auto place = [&](int c) { return (static_cast<int64_t>(c) * Team::size + team.rank()) * map_chunk; };
    const auto count = [&](int64_t i) {
      const int64_t rest = softmax.length - i;
      return rest < map_chunk ? rest : map_chunk;
    };
    with_storage<float>(softmax.dtype, [&](auto storage) {
      using Storage = decltype(storage);
      TENON_UNROLL
      for (int c = 0; c < chunks; ++c) {
        TENON_UNROLL
        for (int j = 0; j < map_chunk; ++j) x[c][j] = least;
        if (place(c) < softmax.length) {
          load_chunk_as<map_chunk, Storage>(x[c], softmax.src, src + place(c), 1, softmax.vector != 0, count(place(c)));
        }
      }
    });
    float greatest = least;
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) greatest = scalar::ep_max(greatest, x[c][j]);
    }
    greatest = team.all(greatest, Greatest<float>());
    const bool log = softmax.log != 0;
    float total = 0;
    TENON_UNROLL
    for (int c = 0; c < chunks; ++c) {
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) {
        const float shifted = x[c][j] - greatest;
        const float power = scalar::ep_exp(shifted);
        if (place(c) + j < softmax.length) total += power;
        x[c][j] = log ? shifted : power;
      }
    }
    total = team.all(total, Sum<float>());
    const float log_total = scalar::ep_log(total);
    with_storage<float>(softmax.dtype, [&](auto storage) {
      using Storage = decltype(storage);
      TENON_UNROLL
      for (int c = 0; c < chunks; ++c) {
        if (place(c) >= softmax.length) continue;
        TENON_UNROLL
        for (int j = 0; j < map_chunk; ++j) x[c][j] = log ? x[c][j] - log_total : x[c][j] / total;
        store_chunk_as<map_chunk, Storage>(x[c], softmax.dst, dst + place(c), 1, softmax.vector != 0, count(place(c)));
      }
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
TENON_KERNEL softmax_f32_warp_held(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::WarpTeam<float>, kernels::held_warp_chunks>(softmax);
}
TENON_KERNEL softmax_f32_block_held(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::BlockTeam<float>, kernels::held_block_chunks>(softmax);
}
TENON_KERNEL_TWICE softmax_f32_block_held_long(TENON_ARGUMENT(SoftmaxArguments) softmax) {
  kernels::softmax_held<kernels::BlockTeam<float>, kernels::held_long_chunks>(softmax);
}
