#include "core/codegen/emit/packs.h"

#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

bool is_narrow_float(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Placeholders of a text: $T the type of a number, $S of an element, $d the dtype, $N the count, $B the bytes of the
// pack, $I the type of an index, $W the type of the access.
struct Words {
  std::string number, element, dtype, count, bytes, index, access;

  std::string in(std::string_view text) const {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '$') {
        result += text[i];
        continue;
      }
      switch (text[++i]) {
        case 'T': result += number; break;
        case 'S': result += element; break;
        case 'd': result += dtype; break;
        case 'N': result += count; break;
        case 'B': result += bytes; break;
        case 'I': result += index; break;
        default: result += access;
      }
    }
    return result;
  }
};

constexpr std::string_view kCuda = R"(static __device__ inline void ep_get$N_$d($T* v, const $S* b, $I i) {
  const $S* at = b + i;
  union { $W whole; $S each[$N]; } pack;
  if (((unsigned long long)at & ($B - 1)) == 0) {
    pack.whole = *(const $W*)at;
  } else {
    for (int k = 0; k < $N; ++k) pack.each[k] = at[k];
  }
#pragma unroll
  for (int k = 0; k < $N; ++k) v[k] = ep_get_$d(pack.each, k);
}
static __device__ inline void ep_put$N_$d($S* b, $I i, const $T* v) {
  $S* at = b + i;
  union { $W whole; $S each[$N]; } pack;
#pragma unroll
  for (int k = 0; k < $N; ++k) ep_put_$d(pack.each, k, v[k]);
  if (((unsigned long long)at & ($B - 1)) == 0) {
    *($W*)at = pack.whole;
  } else {
    for (int k = 0; k < $N; ++k) at[k] = pack.each[k];
  }
}
)";

constexpr std::string_view kOpencl = R"(static inline void ep_get$N_$d($T* v, __global const $S* b, $I i) {
  __global const $S* at = b + i;
  $S each[$N];
  if (((ulong)at & ($B - 1)) == 0) {
    vstore$N(*(__global const $W*)at, 0, each);
  } else {
    for (int k = 0; k < $N; ++k) each[k] = at[k];
  }
#pragma unroll
  for (int k = 0; k < $N; ++k) v[k] = ep_get_$d(each, k);
}
static inline void ep_put$N_$d(__global $S* b, $I i, const $T* v) {
  __global $S* at = b + i;
  $S each[$N];
#pragma unroll
  for (int k = 0; k < $N; ++k) ep_put_$d(each, k, v[k]);
  if (((ulong)at & ($B - 1)) == 0) {
    *(__global $W*)at = vload$N(0, each);
  } else {
    for (int k = 0; k < $N; ++k) at[k] = each[k];
  }
}
)";

// --- GLSL: an access is a vector of words, from which numbers are extracted

std::string word(int64_t words, int64_t number) { return words == 1 ? "w" : fmt::format("w[{}]", number); }

// Number k of the words `w`.
std::string cut_out(DType dtype, int64_t words, int64_t k) {
  const int64_t size = dtype_size(dtype);
  if (size >= 4) return word(words, k);
  const int64_t per_word = 4 / size;
  const std::string from = word(words, k / per_word);
  const bool is_signed = dtype_info(dtype).type_class == DTypeClass::INT;
  const std::string bits = fmt::format("bitfieldExtract({}, {}, {})", is_signed ? fmt::format("int({})", from) : from,
                                       8 * size * (k % per_word), 8 * size);
  if (dtype == DType::boolean) return fmt::format("uint({} != 0u)", bits);
  if (dtype == DType::f16) return fmt::format("f16_to_f32({})", bits);
  return dtype == DType::bf16 ? fmt::format("uintBitsToFloat({} << 16)", bits) : bits;
}

// Word j of the stored pack.
std::string put_together(DType dtype, int64_t j) {
  const int64_t size = dtype_size(dtype);
  const int64_t per_word = size >= 4 ? 1 : 4 / size;
  std::string text;
  for (int64_t k = j * per_word; k < (j + 1) * per_word; ++k) {
    std::string bits = fmt::format("v[{}]", k);
    if (is_narrow_float(dtype)) bits = fmt::format("{}_from_f32({})", dtype_name(dtype), bits);
    if (size < 4)
      bits = fmt::format("((uint({}) & 0x{}u) << {})", bits, size == 1 ? "ff" : "ffff", 8 * size * (k % per_word));
    text += fmt::format("{}{}", text.empty() ? "" : " | ", bits);
  }
  return text;
}

std::string glsl_text(const Words& words, DType dtype, int64_t count) {
  const int64_t size = dtype_size(dtype);
  const int64_t parts = size >= 4 ? count : count * size / 4;  // words of the access; 0: less than a word
  std::string text, get, put;
  if (parts != 0) {
    text = words.in("layout(buffer_reference, scalar, buffer_reference_align = $B) buffer Pack$N_$d { $W v; };\n");
    get = words.in("  const uint64_t at = b + uint64_t(i) * ") + fmt::format("{}ul;\n", size) +
          words.in("  if ((at & ($Bul - 1ul)) == 0ul) {\n    const $W w = Pack$N_$d(at).v;\n");
    for (int64_t k = 0; k < count; ++k) get += fmt::format("    v[{}] = {};\n", k, cut_out(dtype, parts, k));
    get += "    return;\n  }\n";
    put = words.in("  const uint64_t at = b + uint64_t(i) * ") + fmt::format("{}ul;\n", size) +
          words.in("  if ((at & ($Bul - 1ul)) == 0ul) {\n    Pack$N_$d(at).v = $W(");
    for (int64_t j = 0; j < parts; ++j) put += fmt::format("{}{}", j == 0 ? "" : ", ", put_together(dtype, j));
    put += ");\n    return;\n  }\n";
  }
  return text + words.in("void ep_get$N_$d(out $T v[$N], uint64_t b, $I i) {\n") + get +
         words.in(
             "  for (int k = 0; k < $N; ++k) v[k] = ep_get_$d(b, i + k);\n}\n"
             "void ep_put$N_$d(uint64_t b, $I i, $T v[$N]) {\n") +
         put + words.in("  for (int k = 0; k < $N; ++k) ep_put_$d(b, i + k, v[k]);\n}\n");
}

// The type of an access.
std::string access_of(const DialectWords& words, DType dtype, int64_t count) {
  const int64_t bytes = count * dtype_size(dtype);
  if (words.dialect == EP_DIALECT_CUDA_C) {
    return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "uint" : "ushort";
  }
  if (words.dialect == EP_DIALECT_OPENCL_C) {
    const std::string_view element = storage_of(words, dtype);
    if (element == "float" || element == "double") return fmt::format("{}{}", element, count);
    const std::string_view names[] = {"char", "short", "int", "long"};
    const int64_t size = dtype_size(dtype);
    const std::string_view name = names[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
    return fmt::format("{}{}{}", element.starts_with('u') ? "u" : "", name, count);
  }
  const bool is_wide = dtype_size(dtype) == 8;
  if (is_wide) return fmt::format("{}64vec{}", type_of(words, dtype).starts_with('u') ? "u" : "i", count);
  const int64_t parts = bytes / 4;
  const std::string_view type = dtype_size(dtype) == 4 ? type_of(words, dtype) : "uint";
  if (parts <= 1) return std::string(type);
  return fmt::format("{}vec{}", type == "float" ? "" : type.substr(0, 1), parts);
}

}  // namespace

std::string pack_text(const DialectWords& words, DType dtype, int64_t count, std::string_view index) {
  Words own;
  own.number = type_of(words, dtype);
  own.element = storage_of(words, dtype);
  own.dtype = dtype_name(dtype);
  own.count = std::to_string(count);
  own.bytes = std::to_string(count * dtype_size(dtype));
  own.index = index;
  own.access = access_of(words, dtype, count);
  switch (words.dialect) {
    case EP_DIALECT_CUDA_C: return own.in(kCuda);
    case EP_DIALECT_OPENCL_C: return own.in(kOpencl);
    default: return glsl_text(own, dtype, count);
  }
}

}  // namespace tenon::codegen
