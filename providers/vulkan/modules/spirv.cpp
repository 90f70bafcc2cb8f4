#include "providers/vulkan/modules/spirv.h"

#include <cstring>
#include <set>

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t magic = 0x07230203;
constexpr size_t header_words = 5;

// Opcodes and decorations, by their numbers in the specification of SPIR-V.
enum Op : uint32_t {
  OP_SOURCE_CONTINUED = 2,  // from here on: names, and instructions that a module needs
  OP_CAPABILITY = 17,
  OP_DECORATE = 71,
  OP_F_NEGATE = 127,
  OP_F_ADD = 129,
  OP_F_SUB = 131,
  OP_F_MUL = 133,
  OP_F_DIV = 136,
  OP_F_REM = 140,
  OP_F_MOD = 141,
  OP_VECTOR_TIMES_SCALAR = 142,
  OP_DOT = 148,  // before it, from OP_VECTOR_TIMES_SCALAR on: products of vectors and matrices
  OP_MODULE_PROCESSED = 330,
  OP_EXECUTION_MODE_ID = 331,
};
constexpr uint32_t no_contraction = 42;

bool is_arithmetic(uint32_t op) {
  switch (op) {
    case OP_F_NEGATE:
    case OP_F_ADD:
    case OP_F_SUB:
    case OP_F_MUL:
    case OP_F_DIV:
    case OP_F_REM:
    case OP_F_MOD: return true;
    default: return op >= OP_VECTOR_TIMES_SCALAR && op <= OP_DOT;
  }
}

// True if `op` precedes the decorations of a module.
bool comes_first(uint32_t op) {
  return (op >= OP_SOURCE_CONTINUED && op <= OP_CAPABILITY) || op == OP_MODULE_PROCESSED || op == OP_EXECUTION_MODE_ID;
}

}  // namespace

std::vector<uint32_t> spirv_words(const std::string& bytes) {
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  if (bytes.size() % sizeof(uint32_t) != 0 || words.size() <= header_words) return {};
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (words[0] != magic) return {};
  for (size_t at = header_words; at < words.size(); at += words[at] >> 16) {
    const uint32_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at) return {};
  }
  return words;
}

std::vector<uint32_t> without_contraction(std::span<const uint32_t> module) {
  std::vector<uint32_t> decorations;
  std::set<uint32_t> precise;  // results that the text has decorated already
  size_t decorations_begin = 0;
  for (size_t at = header_words; at < module.size(); at += module[at] >> 16) {
    const uint32_t op = module[at] & 0xffff;
    if (decorations_begin == 0 && !comes_first(op)) decorations_begin = at;
    const bool decorates = op == OP_DECORATE && module[at] >> 16 == 3 && module[at + 2] == no_contraction;
    if (decorates) precise.insert(module[at + 1]);
    if (!is_arithmetic(op) || precise.count(module[at + 2]) != 0) continue;
    const uint32_t result = module[at + 2];
    decorations.insert(decorations.end(), {3u << 16 | OP_DECORATE, result, no_contraction});
  }
  std::vector<uint32_t> made(module.begin(), module.end());
  made.insert(made.begin() + static_cast<ptrdiff_t>(decorations_begin), decorations.begin(), decorations.end());
  return made;
}

}  // namespace tenon::provider::vulkan
