// The bytes of a case's operands in one block. Guards surround each operand, which begins at an odd element offset
// unless the descriptor promises more. The gaps between strided elements are part of the block. An image is filled,
// given to a kernel, and compared (compare.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "primitives/status/status.h"
#include "tests/cases/case.h"

namespace tenon::cases {

struct Image {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> offsets;  // by operand: the offset of its element 0; 0 for scalars

  void* address(uint32_t operand) { return bytes.data() + offsets[operand]; }
};

// Room for all operands of `desc`. All of it is poison, gaps and guards included: NaN, huge and huge negative numbers
// in turn; `turn` says which comes first. Poison that a kernel leaves, adds to or reads by mistake exceeds every
// tolerance. With `in_place` the operand that may alias DST lies at DST.
Image make_image(const ep_primitive_desc& desc, bool in_place, uint64_t turn = 0);

// Fills every input. The same case name gives the same values.
void fill_inputs(const Case& test, const ep_primitive_desc& desc, Image* image);

// True if `desc` may run with its source in DST's memory: the kind allows it, and both have the same layout.
bool can_run_in_place(const ep_primitive_desc& desc);

}  // namespace tenon::cases
