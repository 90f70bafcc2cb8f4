#include "primitives/dtype/dtype.h"

#include <array>

namespace tenon {
namespace {

struct Row {
  int32_t id;
  DTypeInfo info;
};

constexpr Row rows[] = {
#define EP_DTYPE(name, id, bits, type_class) {id, {#name, bits, DTypeClass::type_class}},
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

constexpr int32_t id_limit = [] {
  int32_t limit = 0;
  for (const Row& row : rows) limit = row.id >= limit ? row.id + 1 : limit;
  return limit;
}();

constexpr auto by_id = [] {
  std::array<DTypeInfo, id_limit> table{};
  for (DTypeInfo& info : table) info = {"none", 0, DTypeClass::NONE};
  for (const Row& row : rows) table[static_cast<size_t>(row.id)] = row.info;
  return table;
}();

int64_t integer_width(const DTypeInfo& info) { return info.bits; }

DType signed_of_width(int64_t bits) {
  if (bits <= 8) return DType::i8;
  if (bits <= 16) return DType::i16;
  if (bits <= 32) return DType::i32;
  return DType::i64;
}

DType promote_integers(DType a, DType b) {
  const DTypeInfo& ia = dtype_info(a);
  const DTypeInfo& ib = dtype_info(b);
  if (ia.type_class == ib.type_class) return integer_width(ia) >= integer_width(ib) ? a : b;
  const DTypeInfo& is = ia.type_class == DTypeClass::INT ? ia : ib;
  const DTypeInfo& iu = ia.type_class == DTypeClass::INT ? ib : ia;
  return signed_of_width(integer_width(is) > integer_width(iu) ? integer_width(is) : 2 * integer_width(iu));
}

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  const auto id = static_cast<uint32_t>(dtype);
  return by_id[id < by_id.size() ? id : 0];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& row : rows) {
    if (row.info.name == name) return static_cast<DType>(row.id);
  }
  return std::nullopt;
}

int64_t packed_bytes(DType dtype, int64_t count) {
  const int64_t bits = dtype_info(dtype).bits;
  return count / 8 * bits + (count % 8 * bits + 7) / 8;  // eight elements at a time: bits may be more than 2^63
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const DTypeClass ca = dtype_info(a).type_class;
  const DTypeClass cb = dtype_info(b).type_class;
  if (ca == DTypeClass::FLOAT && cb == DTypeClass::FLOAT) {
    if (dtype_info(a).bits != dtype_info(b).bits) return dtype_info(a).bits > dtype_info(b).bits ? a : b;
    return dtype_info(a).bits == 16 ? DType::f32 : DType::f16;
  }
  if (ca == DTypeClass::FLOAT) return a;
  if (cb == DTypeClass::FLOAT) return b;
  if (ca == DTypeClass::BOOL) return b;
  if (cb == DTypeClass::BOOL) return a;
  return promote_integers(a, b);
}

}  // namespace tenon
