// Generator: a source of random numbers: a seed and an offset, which says how many numbers have been used. An op that
// makes random numbers reserves a range of them; the numbers themselves are a function of seed and offset
// (ep_random_attributes in ep_api.h).
#pragma once

#include <cstdint>
#include <mutex>

#include "core/device/export.h"

namespace tenon {

// The random numbers of one op: the numbers of `seed` from `offset` on.
struct RandomRange {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// Threads: any.
class TENON_API Generator {
 public:
  explicit Generator(uint64_t seed = 0) : range_{seed, 0} {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Restarts at the first number of `seed`.
  void manual_seed(uint64_t seed);
  // The position at which the next op begins; set_state restores it.
  RandomRange state() const;
  void set_state(RandomRange state);
  // Takes the next `blocks` blocks of four numbers (f64: two). No other call gets them.
  RandomRange reserve(uint64_t blocks);

 private:
  mutable std::mutex mutex_;
  RandomRange range_;
};

// The generator of rand, randn, bernoulli and dropout. Its first seed is 0.
TENON_API Generator& default_generator();

// Seeds the default generator.
TENON_API void manual_seed(uint64_t seed);

}  // namespace tenon
