// Roots: the values that own memory. A value that is a view lies in the bytes of another value, its root; every other
// value is its own root. Internal to core/graph/execute.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/execute/executable.h"

namespace tenon::graph {

struct RootView {
  uint32_t root = 0;
  int64_t offset = 0;  // offset of the first element, in elements of the root
};

class Roots {
 public:
  Roots() = default;
  explicit Roots(const Executable& program) { follow(program); }

  // Adds the values and steps that were appended to `program` since the last call.
  void follow(const Executable& program);

  // Makes `view`, an added value, a view that begins at `offset` of `source`.
  void set(uint32_t view, uint32_t source, int64_t offset) {
    roots_[view] = {roots_[source].root, roots_[source].offset + offset};
  }

  const RootView& operator[](uint32_t value) const { return roots_[value]; }
  uint32_t root(uint32_t value) const { return roots_[value].root; }

 private:
  std::vector<RootView> roots_;  // indexed by value
  size_t steps_ = 0;             // number of steps that were added
};

}  // namespace tenon::graph
