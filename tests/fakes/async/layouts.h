// The fake's own layouts, drawn from a seed (AsyncControl::layout_seed).
// A value is a header that names its layout, followed by its elements in an order drawn from layout, dtype and dims,
// padded and with every byte changed. Code that reads the bytes as plain elements, or under another token, finds
// nonsense. The fake itself checks the header, so a value under another layout is a violation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

struct ep_memory;

namespace tenon::fakes {

bool has_layouts();

// Returns why the fake refuses the opaque operands of `desc`, whose other parts it has checked; empty: it accepts them.
std::string why_not_layouts(const ep_primitive_desc& desc);
// Writes the layouts that the fake prefers.
void wish_layouts(const ep_primitive_desc& desc, int64_t* wishes);

// Returns `operand` in row-major layout.
ep_operand_desc plain_operand(const ep_operand_desc& operand);
ep_primitive_desc plain_primitive(const ep_primitive_desc& desc);

// The number of bytes of a value in the layout of `operand`, opaque or not.
uint64_t operand_bytes(const ep_operand_desc& operand);
// True if the value lies in an image.
bool is_image(const ep_operand_desc& operand);

// Checks that an operand lies in an image exactly if its layout says so.
void check_home(const ep_operand_desc& operand, const ep_memory* memory);

// One run of a primitive whose operands are in opaque layouts, through a primitive with row-major operands. The
// constructor reads the inputs; `finish` writes the outputs.
class PlainRun {
 public:
  PlainRun(const ep_primitive_desc& desc, char* const* operands);
  void finish();

  ep_primitive_desc desc;       // row-major
  std::vector<char*> operands;  // the memory of each operand

 private:
  const ep_primitive_desc& given_;
  char* const* values_;
  std::vector<std::vector<char>> elements_;  // the memory of each operand; empty for a plain one
};

}  // namespace tenon::fakes
