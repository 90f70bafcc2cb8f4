// The prelude of ep_api/scalar_ops.def in C with vector types: the texts before a kernel of EP_DIALECT_C. Internal to
// core/codegen/emit.
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

// The C types in which numbers of a dtype are computed.
struct CType {
  std::string_view scalar;  // "float"
  std::string_view vector;  // "ep_v_f32"
  std::string_view mask;    // "ep_v_i32"
  std::string_view unsigned_lane;
};
// The types for any dtype that a kernel may have; f16 and bf16 are computed as f32, small integers and bool as i32 or
// u32.
CType c_type(DType dtype);
// The C type of an element in memory: "uint16_t" for bf16.
std::string_view c_storage(DType dtype);
// The C vector type of 16 elements in memory: "ep_v_u16" for bf16.
std::string c_memory_vector(DType dtype);

// The types, and everything that does not depend on a dtype.
std::string_view prelude_c_types();
// ep_turn(src, step, dst, width, lines, count) transposes a tile: it reads `lines` lines of `count` elements of 4
// bytes, `step` elements apart, and writes `count` lines of `lines` elements, `width` elements apart.
std::string_view prelude_c_turn();
// The parts of the prelude that a kernel uses: functions on numbers of these dtypes (f32, f64, integers, bool), loads
// and stores of memory (ep_load_$s, ep_load_part_$s, ep_store_$s, ep_store_part_$s; ep_take_$s turns a vector of memory
// into a vector of numbers, ep_give_$s the reverse), and casts (ep_cast_$s_$t).
struct PreludeUse {
  std::set<DType> numbers, memory;
  std::set<std::pair<DType, DType>> casts;
};
// The functions of `use` that `code` calls, and the functions that those call.
std::string prelude_c(const PreludeUse& use, std::string_view code);

// A text of sdk/provider that the build embeds; core/CMakeLists.txt has the names.
std::string_view embedded_text(std::string_view name);

// Templates of the functions with an approximation error: their texts, with names such as a type still to be filled in.
// The fused functions need a fused multiply-add.
std::string prelude_c_f32();
std::string_view prelude_c_fused_f32();
std::string_view prelude_c_f64();
std::string_view prelude_c_fused_f64();
// The f64 functions that are written in terms of other functions, in C too where C has a text of its own.
std::string prelude_c_shared();

// `text` with "_" and `suffix` added to each word that starts with `ep_`, except types ep_v_...: it turns a row of
// scalar_ops.def into the text for one dtype.
std::string with_suffix(std::string_view text, std::string_view suffix);

}  // namespace tenon::codegen
