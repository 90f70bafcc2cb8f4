#include "core/tensor/generator.h"

namespace tenon {

void Generator::manual_seed(uint64_t seed) { set_state({seed, 0}); }

RandomRange Generator::state() const {
  const std::lock_guard lock(mutex_);
  return range_;
}

void Generator::set_state(RandomRange state) {
  const std::lock_guard lock(mutex_);
  range_ = state;
}

RandomRange Generator::reserve(uint64_t blocks) {
  const std::lock_guard lock(mutex_);
  const RandomRange range = range_;
  range_.offset += blocks;
  return range;
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace tenon
