// Generator: where random numbers come from: a seed, and how far its numbers are used up. An op that makes random
// numbers reserves a range of them; the numbers themselves are a function of seed and offset (ep_random_attributes in
// ep_api.h).
#pragma once

#include <cstdint>
#include <mutex>

#include "core/device/export.h"

namespace tenon {

// Numbers that belong to one op: from `offset` on, of `seed`.
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

  // The numbers of `seed` from the first one on.
  void manual_seed(uint64_t seed);
  // Where the next op begins; set_state goes back there.
  RandomRange state() const;
  void set_state(RandomRange state);
  // Takes the next `blocks` blocks of four numbers (f64: two), which nobody gets again.
  RandomRange reserve(uint64_t blocks);

 private:
  mutable std::mutex mutex_;
  RandomRange range_;
};

// The generator of rand, randn, bernoulli and dropout. It begins with seed 0.
TENON_API Generator& default_generator();

// Seeds the default generator.
TENON_API void manual_seed(uint64_t seed);

}  // namespace tenon
