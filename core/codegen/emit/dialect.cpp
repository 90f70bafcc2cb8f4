#include "core/codegen/emit/dialect.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/codegen/emit/prelude_c.h"
#include "emit_texts.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr DialectWords kWords[] = {
    {EP_DIALECT_OPENCL_C, "static inline ", "__local ", "barrier(CLK_LOCAL_MEM_FENCE);", "get_group_id({0})",
     "get_num_groups({0})", "get_local_id({0})", "p.", "L", "#pragma unroll"},
    {EP_DIALECT_GLSL, "", "shared ", "memoryBarrierShared(); barrier();", "gl_WorkGroupID.{1}", "gl_NumWorkGroups.{1}",
     "gl_LocalInvocationID.{1}", "ep_parameters.", "l", "[[unroll]]"},
    {EP_DIALECT_CUDA_C, "static __device__ inline ", "__shared__ ", "__syncthreads();", "blockIdx.{1}", "gridDim.{1}",
     "threadIdx.{1}", "p.", "LL", "#pragma unroll"},
};

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
bool is_signed(DType dtype) { return dtype_info(dtype).type_class == DTypeClass::INT; }
bool is_glsl(const DialectWords& words) { return words.dialect == EP_DIALECT_GLSL; }
bool is_cuda(const DialectWords& words) { return words.dialect == EP_DIALECT_CUDA_C; }

// --- The prelude of one type: replaces words and removes leftover macros

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

template <class Replacement>
std::string replaced(std::string_view text, const Replacement& replacement) {
  std::string result;
  size_t i = 0;
  while (i < text.size()) {
    if (!is_word(text[i])) {
      result += text[i++];
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && is_word(text[i])) ++i;
    result += replacement(text.substr(begin, i - begin));
  }
  return result;
}

// #undef of each macro that `text` defines, except macros that callers need.
std::string macros_away(std::string_view text) {
  std::set<std::string> names;
  constexpr std::string_view define = "#define ";
  for (size_t at = text.find(define); at != std::string_view::npos; at = text.find(define, at)) {
    at += define.size();
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (!text.substr(at).starts_with("ep_")) names.emplace(text.substr(at, end - at));
  }
  std::string result;
  for (const std::string& name : names) result += fmt::format("#undef {}\n", name);
  return result;
}

int width_of(DType dtype) { return dtype == DType::boolean ? 1 : dtype_info(dtype).bits; }

// Casts from floats: values outside the range of the type become its nearest number, and NaN becomes 0.
std::string from_float(const DialectWords& words, DType from, DType to) {
  const int bits = width_of(to);
  const double high = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits);
  const int64_t most = is_signed(to) ? static_cast<int64_t>(~uint64_t{0} >> (65 - bits))
                                     : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  const int64_t least = is_signed(to) ? -most - 1 : 0;
  const std::string_view type = type_of(words, to);
  return fmt::format(
      "{6}x >= {0} ? {1} : x > {2} ? {3}{4}x) : x <= {2} ? {5} : {3}{4}0)", number_text(words, from, high),
      integer_text(words, to, most), number_text(words, from, is_signed(to) ? -high : 0.0), is_glsl(words) ? "" : "(",
      is_glsl(words) ? fmt::format("{}(", type) : fmt::format("{})(", type), integer_text(words, to, least),
      is_glsl(words) ? fmt::format("ep_isnan_f32(x) ? {}(0) : ", type) : "");
}

// An expression cast to `type`.
std::string as(const DialectWords& words, std::string_view type, std::string_view expression) {
  return is_glsl(words) ? fmt::format("{}({})", type, expression) : fmt::format("(({})({}))", type, expression);
}

std::string bits_of(const DialectWords& words, std::string_view x) {
  return fmt::format("{}({})", is_glsl(words) ? "floatBitsToUint" : is_cuda(words) ? "__float_as_uint" : "as_uint", x);
}
std::string float_of(const DialectWords& words, std::string_view bits) {
  return fmt::format("{}({})",
                     is_glsl(words)   ? "uintBitsToFloat"
                     : is_cuda(words) ? "__uint_as_float"
                                      : "as_float",
                     bits);
}

// The bits of a number of `dtype` in memory, rounded from a float.
std::string narrowed(const DialectWords& words, DType dtype, std::string_view x) {
  const char* prefix = is_glsl(words) ? "" : "ep_";
  return fmt::format("{}{}_from_f32({})", prefix, dtype_name(dtype), x);
}
std::string widened(const DialectWords& words, DType dtype, std::string_view bits) {
  if (dtype == DType::f16) return fmt::format("{}f16_to_f32({})", is_glsl(words) ? "" : "ep_", as(words, "uint", bits));
  return float_of(words, fmt::format("{} << 16", as(words, "uint", bits)));
}

// Rounds to odd, so that a second rounding to fewer bits is correct (Boldo and Melquiond, Emulation of FMA).
std::string to_odd(const DialectWords& words, DType from) {
  if (from == DType::f64) {
    return fmt::format(
        "  float f = (float)x;\n  uint u = {};\n"
        "  if ((double)f != x && x == x && (u & 1u) == 0u) u += (x > (double)f) == ((u >> 31) == 0u) ? 1u : ~0u;\n"
        "  f = {};\n",
        bits_of(words, "f"), float_of(words, "u"));
  }
  if (width_of(from) < 32) return fmt::format("  const float f = {};\n", as(words, "float", "x"));
  const std::string_view wide = is_glsl(words) ? "uint64_t" : is_cuda(words) ? "unsigned long long" : "ulong";
  const std::string negative = is_signed(from) ? "x < 0" : "false";
  return fmt::format(
      "  const bool negative = {0};\n  {1} m = negative ? {2} : {3};\n  float scale = 1.0{5};\n"
      "  while ((m >> 24) != {4}) {{\n    m = (m >> 1) | (m & {6});\n    scale = scale * 2.0{5};\n  }}\n"
      "  const float f = {7} * (negative ? -scale : scale);\n",
      negative, wide, as(words, wide, fmt::format("{} - {}", as(words, wide, "0"), as(words, wide, "x"))),
      as(words, wide, "x"), as(words, wide, "0"), is_glsl(words) ? "" : "f", as(words, wide, "1"),
      as(words, "float", "m"));
}

constexpr std::string_view kCudaHead = R"(#pragma nv_diag_suppress 177
typedef unsigned int uint;
typedef unsigned short ushort;
namespace std {
template <class T> struct numeric_limits;
#define EP_LIMITS(T, least, most) \
  template <> struct numeric_limits<T> { \
    static __host__ __device__ constexpr T min() { return least; } \
    static __host__ __device__ constexpr T lowest() { return least; } \
    static __host__ __device__ constexpr T max() { return most; } \
  };
template <> struct numeric_limits<float> {
  static __device__ float lowest() { return __int_as_float(0xff800000); }
  static __device__ float max() { return __int_as_float(0x7f800000); }
};
template <> struct numeric_limits<double> {
  static __device__ double lowest() { return __longlong_as_double(0xfff0000000000000ll); }
  static __device__ double max() { return __longlong_as_double(0x7ff0000000000000ll); }
};
EP_LIMITS(bool, false, true)
EP_LIMITS(int8_t, -128, 127)
EP_LIMITS(int16_t, -32768, 32767)
EP_LIMITS(int32_t, -2147483647 - 1, 2147483647)
EP_LIMITS(int64_t, -9223372036854775807LL - 1, 9223372036854775807LL)
EP_LIMITS(uint8_t, 0, 255)
EP_LIMITS(uint16_t, 0, 65535)
EP_LIMITS(uint32_t, 0, 4294967295u)
EP_LIMITS(uint64_t, 0, 18446744073709551615ull)
template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;
template <class T> inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T> inline constexpr bool is_integral_v = !is_floating_point_v<T>;
template <class T> inline constexpr bool is_signed_v = is_floating_point_v<T> || T(-1) < T(1);
template <bool, class A, class> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool b, class A, class B> using conditional_t = typename conditional<b, A, B>::type;
template <class T> using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uint8_t, conditional_t<sizeof(T) == 2, uint16_t,
    conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
using ::fabs; using ::fmod; using ::copysign; using ::floor; using ::ceil; using ::trunc; using ::nearbyint;
using ::isnan; using ::isinf; using ::pow; using ::fma;
)"
#define TENON_LIBRARY_C(name) "using ::" #name ";\n"
#define TENON_LIBRARY_NONE(name)
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) TENON_LIBRARY_##library(name)
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
#undef TENON_LIBRARY_C
#undef TENON_LIBRARY_NONE
                                       R"(}
#define EP_FAULT_DIVISION_BY_ZERO 2
)";
constexpr std::string_view kCudaTail = "using namespace tenon::provider::scalar;\n";

constexpr std::string_view kSizes =
    "$F$I ep_least($I a, $I b) { return a < b ? a : b; }\n"
    "$F$I ep_most($I a, $I b) { return a > b ? a : b; }\n"
    "$F$I ep_floor_quotient($I a, $I b) {\n"
    "  const $I q = a / b;\n  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;\n}\n"
    "$F$I ep_floor_rest($I a, $I b) { return a - ep_floor_quotient(a, b) * b; }\n";

// Extends 32 bits to 64. Mesa 22.3 compares int64_t(x) with a constant wrongly if x is an int.
constexpr std::string_view kWide =
    "int64_t ep_wide(int x) { return packInt2x32(ivec2(x, x >> 31)); }\n"
    "uint64_t ep_wide(uint x) { return packUint2x32(uvec2(x, 0u)); }\n";

}  // namespace

std::string_view embedded_text(std::string_view name) {
  for (const emit_texts::ProgramText& each : emit_texts::program_texts) {
    if (each.name == name) return each.text;
  }
  return {};
}

const DialectWords* words_of(int32_t dialect) {
  for (const DialectWords& words : kWords) {
    if (words.dialect == dialect) return &words;
  }
  return nullptr;
}

std::string_view type_of(const DialectWords& words, DType dtype) {
  if (is_cuda(words) && !is_narrow(dtype))
    return storage_of(words, dtype) == "uint8_t" && dtype == DType::boolean ? std::string_view("bool")
                                                                            : storage_of(words, dtype);
  switch (dtype) {
    case DType::f64: return "double";
    case DType::i8:
    case DType::i16:
    case DType::i32: return "int";
    case DType::i64: return "int64_t";
    case DType::u64: return "uint64_t";
    case DType::boolean:
    case DType::u8:
    case DType::u16:
    case DType::u32: return "uint";
    default: return "float";
  }
}

std::string_view storage_of(const DialectWords&, DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::i8: return "int8_t";
    case DType::i16: return "int16_t";
    case DType::i32: return "int32_t";
    case DType::i64: return "int64_t";
    case DType::boolean:
    case DType::u8: return "uint8_t";
    case DType::f16:
    case DType::bf16:
    case DType::u16: return "uint16_t";
    case DType::u32: return "uint32_t";
    case DType::u64: return "uint64_t";
    default: return "float";
  }
}

std::string head_text(const DialectWords& words, std::string_view index) {
  std::string text;
  if (is_cuda(words)) text = fmt::format("{}{}{}", kCudaHead, embedded_text("prelude_cuda"), kCudaTail);
  std::string sizes(kSizes);
  for (size_t at = sizes.find('$'); at != std::string::npos; at = sizes.find('$')) {
    sizes.replace(at, 2, sizes[at + 1] == 'F' ? words.function : index);
  }
  return text + sizes + std::string(is_glsl(words) ? kWide : "");
}

std::string numbers_text(const DialectWords& words, DType dtype) {
  if (is_cuda(words)) return {};
  const std::string suffix(dtype_name(dtype));
  const std::string_view type = type_of(words, dtype);
  const std::string_view unsigned_type = type == "int" ? "uint" : type == "int64_t" ? "uint64_t" : type;
  std::string flag;
  if (is_glsl(words)) {
    const std::string_view name = type == "float"    ? "f32"
                                  : type == "int"    ? "i32"
                                  : type == "uint"   ? "u32"
                                  : is_signed(dtype) ? "i64"
                                                     : "u64";
    flag = fmt::format("#define CLASS_{}\n", name);
    if (name.ends_with("64")) flag += "#define WIDE\n";
  } else {
    flag = fmt::format("#define {}\n", dtype == DType::f32   ? "EP_FLOAT32"
                                       : dtype == DType::f64 ? "EP_FLOAT64"
                                       : is_signed(dtype)    ? "EP_SIGNED"
                                                             : "EP_UNSIGNED");
  }
  const std::string text = replaced(embedded_text(is_glsl(words) ? "prelude_glsl" : "prelude_opencl"), [&](auto word) {
    if (word == "EP_T" || (is_glsl(words) && word == "T")) return std::string(type);
    if (word == "EP_U") return std::string(unsigned_type);
    if (word == "EP_WIDTH" || (is_glsl(words) && word == "WIDTH")) return std::to_string(width_of(dtype));
    if (word.starts_with("ep_") || (is_glsl(words) && (word == "wrap" || word == "divisor_fault"))) {
      return fmt::format("{}_{}", word, suffix);
    }
    return std::string(word);
  });
  return flag + text + macros_away(flag + text);
}

std::string narrow_text(const DialectWords& words) {
  if (is_cuda(words)) {
    return "static __device__ inline float ep_f16_to_f32(uint bits) {\n"
           "  float f;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"((ushort)bits));\n  return f;\n}\n"
           "static __device__ inline ushort ep_f16_from_f32(float f) {\n"
           "  ushort bits;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(f));\n  return bits;\n}\n"
           "static __device__ inline ushort ep_bf16_from_f32(float f) {\n#if __CUDA_ARCH__ >= 800\n"
           "  ushort bf16;\n  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bf16) : \"f\"(f));\n  return bf16;\n#else\n"
           "  const uint bits = __float_as_uint(f);\n"
           "  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)((bits >> 16) | 0x40u);\n"
           "  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n#endif\n}\n";
  }
  return std::string(embedded_text(is_glsl(words) ? "half_glsl" : "elements_opencl"));
}

std::string memory_text(const DialectWords& words, DType dtype, std::string_view index) {
  const std::string name(dtype_name(dtype));
  const std::string_view storage = storage_of(words, dtype);
  std::string text;
  std::string element = "(b)[i]";
  if (is_glsl(words)) {
    // Drivers add a 32-bit index to the address themselves; a 64-bit index cannot index an array.
    const int64_t size = dtype_size(dtype);
    const bool is_array = index == "int";
    text = fmt::format(
        "layout(buffer_reference, scalar, buffer_reference_align = {0}) buffer Memory_{1} {{ {2} v{3}; }};\n", size,
        name, storage, is_array ? "[]" : "");
    element = is_array ? fmt::format("Memory_{}(b).v[i]", name)
                       : fmt::format("Memory_{}((b) + uint64_t(i) * {}ul).v", name, size);
  }
  std::string get = as(words, type_of(words, dtype), element);
  if (dtype == DType::boolean) get = as(words, type_of(words, dtype), element + " != " + as(words, storage, "0"));
  if (is_narrow(dtype)) get = widened(words, dtype, element);
  const std::string put = as(words, storage, is_narrow(dtype) ? narrowed(words, dtype, "x") : "x");
  return text +
         fmt::format("#define ep_get_{0}(b, i) {1}\n#define ep_put_{0}(b, i, x) {2} = {3}\n", name, get, element, put);
}

std::string cast_text(const DialectWords& words, DType from, DType to) {
  const std::string_view type = type_of(words, to);
  std::string body;
  if (to == DType::boolean) {
    const std::string truth = is_floating(from) && is_glsl(words)
                                  ? "(floatBitsToUint(x) << 1) != 0u"
                                  : fmt::format("x != {}", as(words, type_of(words, from), "0"));
    body = fmt::format("  return {};\n", as(words, type, truth));
  } else if (is_narrow(to)) {
    const std::string bits = narrowed(words, to, "f");
    body = (from == DType::f32 ? "  const float f = x;\n" : to_odd(words, from)) +
           fmt::format("  return {};\n", widened(words, to, bits));
  } else if (is_floating(from) && !is_floating(to)) {
    body = fmt::format("  return {};\n", from_float(words, from, to));
  } else if (!is_floating(to) && width_of(to) < 32 && !is_cuda(words)) {
    const std::string wide = as(words, type, "x");
    const std::string wrapped = is_glsl(words) ? fmt::format("bitfieldExtract({}, 0, {})", wide, width_of(to))
                                               : as(words, type, as(words, storage_of(words, to), wide));
    body = fmt::format("  return {};\n", wrapped);
  } else {
    const bool widens = is_glsl(words) && !is_floating(from) && width_of(from) <= 32 && type.ends_with("64_t");
    body = fmt::format("  return {};\n", as(words, type, widens ? "ep_wide(x)" : "x"));
  }
  return fmt::format("{}{} ep_cast_{}_{}({} x) {{\n{}}}\n", words.function, type, dtype_name(from), dtype_name(to),
                     type_of(words, from), body);
}

std::string body_text(const DialectWords& words, std::string_view expression, DType dtype) {
  if (is_cuda(words)) {
    const std::string_view type = type_of(words, dtype);
    return fmt::format("return {};", replaced(expression, [&](std::string_view word) {
                         if (word == "ep_lit") return std::string(type);
                         if (word == "ep_lowest") return fmt::format("std::numeric_limits<{}>::lowest", type);
                         if (word == "ep_highest") return fmt::format("std::numeric_limits<{}>::max", type);
                         return std::string(word);
                       }));
  }
  return fmt::format("return {};", with_suffix(expression, dtype_name(dtype)));
}

std::string number_text(const DialectWords& words, DType dtype, double number) {
  const bool is_f64 = dtype == DType::f64;
  if (!is_f64) number = static_cast<float>(number);
  const bool plain = std::isfinite(number) && !is_glsl(words);
  if (plain) return fmt::format("{:a}{}", number, is_f64 ? "" : "f");
  if (is_f64) {
    const std::string bits = fmt::format("0x{:x}", std::bit_cast<uint64_t>(number));
    return is_cuda(words) ? fmt::format("__longlong_as_double({}ll)", bits) : fmt::format("as_double({}ul)", bits);
  }
  return float_of(words, fmt::format("0x{:x}u", std::bit_cast<uint32_t>(static_cast<float>(number))));
}

std::string integer_text(const DialectWords& words, DType dtype, int64_t number) {
  const std::string_view type = type_of(words, dtype);
  if (dtype == DType::boolean) return as(words, type, number != 0 ? "1" : "0");
  const std::string_view suffix = words.long_suffix;
  if (dtype == DType::u64) return as(words, type, fmt::format("{}u{}", static_cast<uint64_t>(number), suffix));
  if (number == INT64_MIN) return as(words, type, fmt::format("-9223372036854775807{} - 1", suffix));
  if (number > INT32_MIN && number <= INT32_MAX) return as(words, type, std::to_string(number));
  return as(words, type, fmt::format("{}{}", number, suffix));
}

}  // namespace tenon::codegen
