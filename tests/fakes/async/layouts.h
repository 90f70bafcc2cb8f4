// The fake's layouts of its own, drawn from a seed (AsyncControl::layout_seed).
//
// A value is a head that names its layout, and then its elements in an order drawn from layout, dtype and dims, padded
// and with every byte changed. Whoever reads the bytes as plain elements, or under another token, finds nonsense; the
// fake itself looks at the head, so that a value under another layout is a violation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

struct ep_memory;

namespace tenon::fakes {

bool has_layouts();

// Why the fake does not take the opaque operands of `desc`, whose other parts it has checked. Empty: it takes them.
std::string why_not_layouts(const ep_primitive_desc& desc);
// Writes what the fake would like.
void wish_layouts(const ep_primitive_desc& desc, int64_t* wishes);

// `operand`, row-major.
ep_operand_desc plain_operand(const ep_operand_desc& operand);
ep_primitive_desc plain_primitive(const ep_primitive_desc& desc);

// The bytes of a value that lies as `operand` says, opaque or not.
uint64_t operand_bytes(const ep_operand_desc& operand);
// True if it lies in an image.
bool is_image(const ep_operand_desc& operand);

// An operand lies in an image exactly if its layout says so.
void check_home(const ep_operand_desc& operand, const ep_memory* memory);

// One run of a primitive whose operands lie in layouts: a primitive of row-major operands in their place. It is made
// when the run begins, and reads the inputs; `finish` writes the outputs.
class PlainRun {
 public:
  PlainRun(const ep_primitive_desc& desc, char* const* operands);
  void finish();

  ep_primitive_desc desc;       // row-major
  std::vector<char*> operands;  // by operand

 private:
  const ep_primitive_desc& given_;
  char* const* values_;
  std::vector<std::vector<char>> elements_;  // by operand; empty: it is plain
};

}  // namespace tenon::fakes
