// random: Philox4x32-10, and the conversion of its words as defined in ep_api.h.
#include <array>
#include <cmath>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

using Block = std::array<uint32_t, 4>;

// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11), section 3.3.
Block philox(uint64_t seed, uint64_t counter) {
  Block x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key_low = static_cast<uint32_t>(seed);
  auto key_high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key_low, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key_high, static_cast<uint32_t>(a)};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return x;
}

double uniform(DType dtype, uint32_t word) {
  if (dtype == DType::f16) return std::ldexp(word >> 21, -11);
  if (dtype == DType::bf16) return std::ldexp(word >> 24, -8);
  return std::ldexp(word >> 8, -24);
}

// The logarithm of (word / 256 + 1) * 2^-24, in f32.
float logarithm(uint32_t word) {
  int exponent = 0;
  float m = std::frexp(static_cast<float>((word >> 8) + 1), &exponent);  // in [0.5, 1)
  if (m < 0.75F) {
    m *= 2;
    --exponent;
  }
  const float s = (m - 1) / (m + 1);
  const float q = s * s;
  const float series = q * (1 / 3.F + q * (1 / 5.F + q * (1 / 7.F + q * (1 / 9.F))));
  return static_cast<float>(exponent - 24) * 0.693147182F + (2 * s) * (1 + series);
}

// Element `which`, 0 or 1, of the pair that two words yield.
float normal(uint32_t w, uint32_t v, int which) {
  const float r = std::sqrt(-2 * logarithm(w));
  const float a = (static_cast<float>(v >> 8 & 0x3fffff) * 0x1p-22F - 0.5F) * 1.57079637F;
  const float b = a * a;
  const float sine = a * (1 + b * (-1 / 6.F + b * (1 / 120.F + b * (-1 / 5040.F + b * (1 / 362880.F)))));
  const float cosine = 1 + b * (-1 / 2.F + b * (1 / 24.F + b * (-1 / 720.F + b * (1 / 40320.F))));
  const float turned[4][2] = {{cosine, sine}, {-sine, cosine}, {-cosine, -sine}, {sine, -cosine}};
  return turned[v >> 30][which] * r;
}

}  // namespace

void run_random(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand given = call[EP_ROLE_SRC];
  const int64_t zero = 0;
  const int64_t one = 1;
  const auto seed = given ? static_cast<uint64_t>(given.get<int64_t>(&zero)) : call.parameter<uint64_t>(0);
  const auto offset = given ? static_cast<uint64_t>(given.get<int64_t>(&one)) : call.parameter<uint64_t>(1);
  const bool normally = call.desc.attributes.random.distribution == EP_RANDOM_NORMAL;
  uint64_t i = 0;
  for_each_index(dst.dims(), [&](const int64_t* at) {
    const uint64_t element = i++;
    if (dtype_size(dst.dtype()) == 8) {
      const Block block = philox(seed, offset + element / 2);
      const uint64_t bits = uint64_t{block[2 * (element % 2)]} << 32 | block[2 * (element % 2) + 1];
      return is_integer(dst.dtype()) ? dst.set(at, bits)
                                     : dst.set(at, std::ldexp(static_cast<double>(bits >> 11), -53));
    }
    const Block block = philox(seed, offset + element / 4);
    if (is_integer(dst.dtype())) return dst.set(at, uint64_t{block[element % 4]});
    if (!normally) return dst.set(at, uniform(dst.dtype(), block[element % 4]));
    const size_t pair = element % 4 / 2 * 2;
    dst.set(at, static_cast<double>(normal(block[pair], block[pair + 1], static_cast<int>(element % 2))));
  });
}

}  // namespace tenon::reference
