// The prelude of ep_api/scalar_ops.def in C with vector types: the texts that stand in front of a kernel of
// EP_DIALECT_C. Internal to core/codegen/emit.
//
// A text is written for one dtype: `$s` is its name, `$S` the C type of one number, `$V` the vector of numbers, `$M`
// the vector of truth values that a comparison of two `$V` gives (0 or all bits), `$U` the unsigned type of a lane,
// `$W` the bits at which integers wrap. A truth value between expressions is an ep_v_i32.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "primitives/dtype/dtype.h"

namespace tenon::codegen {

// How the numbers of a dtype are computed in C.
struct CType {
  std::string_view scalar;  // "float"
  std::string_view vector;  // "ep_v_f32"
  std::string_view mask;    // "ep_v_i32"
  std::string_view unsigned_lane;
};
// Of any dtype that a kernel has; f16 and bf16 are computed as f32, small integers and bool as i32 or u32.
CType c_type(DType dtype);
// How an element of the dtype lies in memory: "uint16_t" for bf16.
std::string_view c_storage(DType dtype);
// 16 elements as they lie in memory: "ep_v_u16" for bf16.
std::string c_memory_vector(DType dtype);

// The types and what does not depend on a dtype.
std::string_view prelude_c_types();
// ep_turn(src, step, dst, width, lines, count): `lines` lines, `step` elements of 4 bytes apart, of `count` elements
// each, as `count` lines of `lines` elements, `width` elements apart.
std::string_view prelude_c_turn();
// What a kernel uses of the rest: functions on numbers of these dtypes (f32, f64, integers, bool), loads and stores of
// memory (ep_load_$s, ep_load_part_$s, ep_store_$s, ep_store_part_$s, ep_take_$s, a vector of memory as a vector of
// numbers, ep_give_$s), and casts (ep_cast_$s_$t).
struct PreludeUse {
  std::set<DType> numbers, memory;
  std::set<std::pair<DType, DType>> casts;
};
// Those functions that `code` names, and those that they name.
std::string prelude_c(const PreludeUse& use, std::string_view code);

// The functions that have an error, before words are replaced; the fused ones need a fused multiply-add, as all of f64.
std::string_view prelude_c_f32();
std::string_view prelude_c_fused_f32();
std::string_view prelude_c_f64();
// Functions of f64 that are written in others.
std::string prelude_c_shared();

// `text` with each word that starts with `ep_` (but no type ep_v_...) followed by `_` and `suffix`: what a row of
// scalar_ops.def says, for one dtype.
std::string with_suffix(std::string_view text, std::string_view suffix);

}  // namespace tenon::codegen
