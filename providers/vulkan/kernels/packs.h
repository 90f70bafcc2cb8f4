// Packs: consecutive elements that one invocation of an element-wise kernel reads or writes in one access of 4, 8 or 16
// bytes per operand. Types and strides decide if a descriptor can have packs; addresses decide if a launch has them.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

inline constexpr int32_t most_inputs = 3;

// The layout of elements in every launch of a descriptor.
struct Layout {
  bool strided = false;              // each launch passes dims and strides; else operands are contiguous or repeated
  uint32_t repeated = 0;             // bit i: input i is a single element, used for all results
  int32_t sizes[1 + most_inputs]{};  // bytes per element of a contiguous operand; 0 for other operands
  int32_t pack = 1;                  // elements per pack, so that those of the largest type fill 16 bytes
};

// Operand 0 is the destination and is not repeated. Uses no packs if `packs` is false, or if a pack of the smallest
// type would have less than 4 bytes.
Layout layout_of(const ep_primitive_desc& desc, bool packs);

// The number of whole packs in `count` consecutive elements from `addresses` on. 0 if an address is not a multiple of
// its operand's pack.
uint64_t packs_in(const Layout& layout, uint64_t count, const uint64_t (&addresses)[1 + most_inputs]);

}  // namespace tenon::provider::vulkan
