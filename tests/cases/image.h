// The bytes of a case's operands, laid out in one block: each operand between guards, at an odd element offset unless
// the descriptor promises more, the places between strided elements included. Filled, handed to a kernel, compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "primitives/status/status.h"
#include "tests/cases/case.h"

namespace tenon::cases {

struct Image {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> offsets;  // of element 0, per operand; scalars have none (0)

  void* address(uint32_t operand) { return bytes.data() + offsets[operand]; }
};

// Room for all operands of `desc`, poisoned, the places between and beside their elements too: NaN, huge and hugely
// negative numbers in turn (`turn` says which comes first), so that what is left there, added to or read by mistake is
// beyond every tolerance. Where `in_place`, the operand that may be DST's alias lies where DST lies.
Image make_image(const ep_primitive_desc& desc, bool in_place, uint64_t turn = 0);

// Gives every input its values, the same for the same case name.
void fill_inputs(const Case& test, const ep_primitive_desc& desc, Image* image);

// True if `desc` may run with its source in DST's memory: the kind allows it, and the two agree in layout.
bool can_run_in_place(const ep_primitive_desc& desc);

// Ok if every output element of `got` is near enough to that of `want`, and every other byte is as `want` has it (which
// began as the same image). The message names the first element that is not.
Status compare_images(const Case& test, const ep_primitive_desc& desc, const Image& start, Image got, Image want);

}  // namespace tenon::cases
