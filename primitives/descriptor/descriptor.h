// ep_primitive_desc describes one computation. The functions here find its operands, check it, and write it as one line
// of text, which can be parsed back to the same descriptor.
//
//   softmax axis=1 : dst f32[2,3]{3,1} src f32[2,3]{3,1}@64
//   binary op=mul : dst f16[?]{1} src f16[?]{1} src_b f16 scalar
//   matmul precision=relaxed epilogue=relu epilogue=add(epilogue_1) : dst ... src ... src_b ...+constant epilogue_1 ...
//
// An operand is written as its role, dtype, dims and strides, then @alignment and +constant if they are not the
// default; `?` is EP_ANY. An opaque operand has its layout token in place of strides, `f32[2,3]{#7}`. The attributes
// that are not 0 come before the colon, then flags, precision, accumulation dtype (acc=), baked scalars
// (scalar2=f32:0.5) and epilogues (`@5` after the name: its launch scalars begin at slot 5).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::descriptor {

// The operand with this role; null if the primitive has no such operand.
const ep_operand_desc* find_operand(const ep_primitive_desc& desc, int32_t role);
// The index of that operand in `operands` (and in a launch); -1 if there is none.
int32_t operand_index(const ep_primitive_desc& desc, int32_t role);

// The number of bytes of the descriptor that are hashed and compared.
inline size_t used_bytes(const ep_primitive_desc& desc) {
  return offsetof(ep_primitive_desc, operands) + desc.operand_count * sizeof(ep_operand_desc);
}

// The largest valid alignment of an operand, and whether `alignment` is valid: a power of two up to it.
constexpr int32_t kGreatestAlignment = 65536;
constexpr bool is_alignment(int32_t alignment) {
  return alignment >= 0 && alignment <= kGreatestAlignment && (alignment & (alignment - 1)) == 0;
}

// True if `operand` has a layout of the device's own. Its `strides` then hold a layout token and no strides.
constexpr bool is_opaque(const ep_operand_desc& operand) { return (operand.flags & EP_OPERAND_FLAG_OPAQUE) != 0; }
bool has_opaque(const ep_primitive_desc& desc);

// True if a dim or stride anywhere is EP_ANY.
bool has_any(const ep_primitive_desc& desc);

// The largest penalty_bytes that a device may state for `desc`: the bytes of all operands, computed from their dims. 0
// if `desc` has an open dim or stride (EP_ANY) or an opaque operand.
uint64_t greatest_penalty(const ep_primitive_desc& desc);

// Ok if `desc` follows the rules of ep_api.h for its kind: operands present, in order, with matching dims and allowed
// dtypes, unused fields zero. Unknown kinds, scalar functions, dtypes, roles, flags and extensions are
// Code::unsupported; any other error is Code::invalid_argument. EP_ANY matches every dim. Rules about values that only
// a launch gives are not checked.
Status check_descriptor(const ep_primitive_desc& desc);

std::string to_string(const ep_primitive_desc& desc);
Result<ep_primitive_desc> parse_descriptor(std::string_view text);

}  // namespace tenon::descriptor
