// random_{uniform,uniform_f64,normal,bits_4,bits_8}_{run,strided}: a thread draws a chunk of elements from one block of
// Philox4x32-10, or from two blocks if an element needs two words. The formulas are above ep_random_attributes in
// ep_api.h. Products and sums are not contracted, so that all devices give the same bits.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

struct Words {
  uint32_t at[4];
};

// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11), section 3.3.
TENON_ON_GPU Words philox(uint64_t seed, uint64_t counter) {
  Words x = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}};
  auto low = static_cast<uint32_t>(seed);
  auto high = static_cast<uint32_t>(seed >> 32);
  TENON_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x.at[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * x.at[2];
    x = {{static_cast<uint32_t>(b >> 32) ^ x.at[1] ^ low, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ x.at[3] ^ high, static_cast<uint32_t>(a)}};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return x;
}

// The upper `bits` bits of a word.
TENON_ON_GPU float uniform(uint32_t word, int32_t bits) {
  const auto unit = bits_as<float>((127U - static_cast<uint32_t>(bits)) << 23);  // 2^-bits
  return static_cast<float>(static_cast<int32_t>(word >> (32 - bits))) * unit;
}

// sqrt(-2 log((w / 256 + 1) * 2^-24)).
TENON_ON_GPU float radius(uint32_t w) {
  const auto bits = bits_as<uint32_t>(static_cast<float>(static_cast<int32_t>((w >> 8) + 1)));
  const auto upper = static_cast<int32_t>(bits >> 22 & 1U);  // true if the significand is 1.5 or more
  const int32_t e = static_cast<int32_t>(bits >> 23) - 127 + upper - 24;
  const auto m = bits_as<float>((bits & 0x7fffffU) | static_cast<uint32_t>(127 - upper) << 23);
  const float s = (m - 1) / (m + 1);
  const float q = s * s;
  const float series = 1 + q * (1 / 3.F + q * (1 / 5.F + q * (1 / 7.F + q * (1 / 9.F))));
  return scalar::ep_sqrt(-2 * (static_cast<float>(e) * 0.693147182F + (2 * s) * series));
}

TENON_ON_GPU float with_sign(float x, uint32_t sign) { return bits_as<float>(bits_as<uint32_t>(x) ^ sign); }

// Two normal numbers from the words w and v.
TENON_ON_GPU void normal(uint32_t w, uint32_t v, float* pair) {
  const float r = radius(w);
  const float a = (static_cast<float>(static_cast<int32_t>(v >> 8 & 0x3fffffU)) * 0x1p-22F - 0.5F) * 1.57079637F;
  const float b = a * a;
  const float sine = a * (1 + b * (-1 / 6.F + b * (1 / 120.F + b * (-1 / 5040.F + b * (1 / 362880.F)))));
  const float cosine = 1 + b * (-1 / 2.F + b * (1 / 24.F + b * (-1 / 720.F + b * (1 / 40320.F))));
  // Quarter turns: {c, s}, {-s, c}, {-c, -s}, {s, -c}.
  const uint32_t turn = v >> 30;
  const bool odd = (turn & 1U) != 0;
  pair[0] = with_sign(odd ? sine : cosine, (turn ^ turn >> 1) << 31) * r;
  pair[1] = with_sign(odd ? cosine : sine, turn >> 1 << 31) * r;
}

// Stores a chunk. dst is one run, or has strides, whose arithmetic takes twice the registers.
template <bool is_run, class Storage, class Value>
TENON_ON_GPU void put(const RandomArguments& random, int64_t chunk, const Value* x) {
  const int64_t first = chunk * map_chunk;
  const int64_t count = random.axes.count - first < map_chunk ? random.axes.count - first : map_chunk;
  if constexpr (is_run) {
    store_chunk_as<map_chunk, Storage>(x, random.dst, first, 1, random.vector != 0, count);
  } else {
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) {
      if (i >= count) continue;
      reinterpret_cast<Storage*>(random.dst)[offset_in(random.axes, random.axes.dst, first + i)] = cast<Storage>(x[i]);
    }
  }
}

// Calls draw(chunk, seed, offset) for each chunk of this thread.
template <class Draw>
TENON_ON_GPU void draw_all(const RandomArguments& random, const Draw& draw) {
  uint64_t seed = random.seed;
  uint64_t offset = random.offset;
  if (random.start != 0) {
    seed = reinterpret_cast<const uint64_t*>(random.start)[0];
    offset = reinterpret_cast<const uint64_t*>(random.start)[random.start_stride];
  }
  const int64_t chunks = (random.axes.count + map_chunk - 1) / map_chunk;
  for (int64_t chunk = thread_in_grid(); chunk < chunks; chunk += threads_in_grid()) draw(chunk, seed, offset);
}

template <bool is_run>
TENON_ON_GPU void put_floats(const RandomArguments& random, int64_t chunk, const float* x) {
  with_storage<float>(random.dtype, [&](auto storage) { put<is_run, decltype(storage)>(random, chunk, x); });
}

template <bool is_run>
TENON_ON_GPU void draw_uniform(const RandomArguments& random) {
  const int32_t bits = random.dtype == EP_DTYPE_f32 ? 24 : random.dtype == EP_DTYPE_f16 ? 11 : 8;
  draw_all(random, [&](int64_t chunk, uint64_t seed, uint64_t offset) {
    const Words words = philox(seed, offset + static_cast<uint64_t>(chunk));
    float x[map_chunk];
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) x[i] = uniform(words.at[i], bits);
    put_floats<is_run>(random, chunk, x);
  });
}

template <bool is_run>
TENON_ON_GPU void draw_normal(const RandomArguments& random) {
  draw_all(random, [&](int64_t chunk, uint64_t seed, uint64_t offset) {
    const Words words = philox(seed, offset + static_cast<uint64_t>(chunk));
    float x[map_chunk];
    normal(words.at[0], words.at[1], x);
    normal(words.at[2], words.at[3], x + 2);
    put_floats<is_run>(random, chunk, x);
  });
}

template <bool is_run>
TENON_ON_GPU void draw_words(const RandomArguments& random) {
  draw_all(random, [&](int64_t chunk, uint64_t seed, uint64_t offset) {
    const Words words = philox(seed, offset + static_cast<uint64_t>(chunk));
    put<is_run, uint32_t>(random, chunk, words.at);
  });
}

// Elements of 8 bytes, which need two words each.
template <bool is_run, class Storage>
TENON_ON_GPU void draw_long(const RandomArguments& random) {
  const auto element = [](const Words& words, int pair) {
    const uint64_t bits = uint64_t{words.at[2 * pair]} << 32 | words.at[2 * pair + 1];
    if constexpr (std::is_same_v<Storage, double>)
      return static_cast<double>(bits >> 11) * 0x1p-53;
    else
      return bits;
  };
  draw_all(random, [&](int64_t chunk, uint64_t seed, uint64_t offset) {
    const uint64_t block = offset + 2 * static_cast<uint64_t>(chunk);
    const Words one = philox(seed, block);
    const Words two = philox(seed, block + 1);
    const Storage x[map_chunk] = {element(one, 0), element(one, 1), element(two, 0), element(two, 1)};
    put<is_run, Storage>(random, chunk, x);
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::RandomArguments;

#define TENON_RANDOM(blocks, place, is_run)                                                      \
  TENON_TEAM_KERNEL(blocks) random_uniform_##place(TENON_ARGUMENT(RandomArguments) random) {     \
    kernels::draw_uniform<is_run>(random);                                                       \
  }                                                                                              \
  TENON_TEAM_KERNEL(blocks) random_normal_##place(TENON_ARGUMENT(RandomArguments) random) {      \
    kernels::draw_normal<is_run>(random);                                                        \
  }                                                                                              \
  TENON_TEAM_KERNEL(blocks) random_bits_4_##place(TENON_ARGUMENT(RandomArguments) random) {      \
    kernels::draw_words<is_run>(random);                                                         \
  }                                                                                              \
  TENON_TEAM_KERNEL(blocks) random_bits_8_##place(TENON_ARGUMENT(RandomArguments) random) {      \
    kernels::draw_long<is_run, uint64_t>(random);                                                \
  }                                                                                              \
  TENON_TEAM_KERNEL(blocks) random_uniform_f64_##place(TENON_ARGUMENT(RandomArguments) random) { \
    kernels::draw_long<is_run, double>(random);                                                  \
  }
TENON_RANDOM(8, run, true)
TENON_RANDOM(3, strided, false)
