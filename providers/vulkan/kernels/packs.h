// Packs: neighbouring elements that one invocation of an element-wise kernel reads and writes by one access of 4, 8 or
// 16 bytes per operand. Whether a descriptor has them follows from types and strides; whether a launch does, from
// addresses.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

inline constexpr int32_t most_inputs = 3;

// How the elements of every launch of a descriptor lie.
struct Layout {
  bool strided = false;   // dims and strides come with the launch; else every operand is one of the following
  uint32_t repeated = 0;  // bit i: input i is one element for all
  int32_t sizes[1 + most_inputs]{};  // bytes of an element of those that lie one after the other, 0 of the others
  int32_t pack = 1;                  // elements of a pack; those of the largest type fill 16 bytes
};

// Operand 0 is the destination, which is not repeated. There are packs only if they are asked for, and none where the
// smallest type would fill less than 4 bytes.
Layout layout_of(const ep_primitive_desc& desc, bool packs);

// How many packs the first `count` elements have, one after the other from `addresses` on: none where an address is no
// multiple of its operand's pack. What is left over is less than a pack, or everything.
uint64_t packs_in(const Layout& layout, uint64_t count, const uint64_t (&addresses)[1 + most_inputs]);

}  // namespace tenon::provider::vulkan
