#include "tests/cases/image.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/convert.h"
#include "primitives/reference/call.h"
#include "primitives/table/table.h"
#include "tests/cases/element.h"

namespace tenon::cases {
namespace {

// A small generator that gives the same numbers on every machine (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Special values of a floating dtype, including bit patterns one step from 0 and from 1.
std::vector<uint64_t> special_floats(DType dtype) {
  const double greatest = greatest_finite(dtype);
  std::vector<uint64_t> bits;
  const double inf = std::numeric_limits<double>::infinity();
  for (double value :
       {std::nan(""), inf, -inf, 0.0, -0.0, 1.0, -1.0, greatest, -greatest, 0.5, -0.5, 2.0, 3.5, -2.5, 100.0, -100.0}) {
    bits.push_back(encode_float(dtype, value));
  }
  bits.push_back(1);                              // the least denormal
  bits.push_back(encode_float(dtype, -0.0) | 1);  // the negative least denormal
  bits.push_back(encode_float(dtype, 1.0) + 1);   // the successor of 1
  bits.push_back(encode_float(dtype, 1.0) - 1);   // the predecessor of 1
  const uint64_t sign = uint64_t{1} << (dtype_info(dtype).bits - 1);
  bits.push_back(sign - 1);           // the NaN with the greatest payload: rounding it up would give -0
  bits.push_back(sign | (sign - 1));  // the negative number of greatest magnitude
  return bits;
}

std::vector<uint64_t> special_integers(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.type_class == DTypeClass::BOOL) return {0, 1};
  const uint64_t top = uint64_t{1} << (info.bits - 1);
  const uint64_t ones = top | (top - 1);
  return {0, 1, ones, top, top - 1, top + 1, ones - 1, 2, 3, 7, 5};
}

double decoded(DType dtype, uint64_t bits) { return is_floating(dtype) ? decode_float(dtype, bits) : 0; }

double random_value(DType dtype, const Values& values, Random* random) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.type_class == DTypeClass::BOOL) return static_cast<double>(random->bits() & 1);
  double low = values.low;
  double high = values.high;
  if (info.type_class == DTypeClass::FLOAT) {
    const double value = low + random->unit() * (high - low);
    return value == 0 ? high : value;
  }
  const double top = std::ldexp(1.0, std::min(info.bits, 53) - 1);
  low = std::max(low, info.type_class == DTypeClass::INT ? -top : 1);
  high = std::min(high, info.type_class == DTypeClass::INT ? top - 1 : 2 * top - 1);
  const double value = std::floor(low + random->unit() * (high - low + 1));
  return value == 0 ? 1 : value;
}

double value_of(DType dtype, const Values& values, int64_t number, Random* random) {
  switch (values.fill) {
    case Fill::GRID: {
      const double steps = std::floor(random->unit() * (values.high - values.low) * 8 + 0.5);
      const double value = values.low + steps / 8;
      return value == 0 ? 0.625 : value;
    }
    case Fill::DIVISOR: {
      const double value = random_value(dtype, values, random);
      return value == -1 || value == 0 ? 3 : value;
    }
    case Fill::INDEX:
      if (number < 2) return number == 0 ? values.low : values.high;
      return std::floor(values.low + random->unit() * (values.high - values.low + 1));
    case Fill::LAST: return values.low;
    case Fill::DIAGONAL:
    case Fill::PEAKS: return random_value(dtype, {Fill::RANDOM, values.low, -values.low}, random);
    case Fill::TIES: return values.low + static_cast<double>(random->bits() % 4) * (values.high - values.low) / 3;
    default: return random_value(dtype, values, random);
  }
}

// The index of the special value for element `number`, or -1.
int64_t special_number(Fill fill, int64_t number, int64_t count) {
  switch (fill) {
    case Fill::SPECIAL:
    case Fill::FINITE: return number < count ? number : -1;
    case Fill::SPECIAL_A: return number < count * count ? number % count : -1;
    case Fill::SPECIAL_B: return number < count * count ? number / count : -1;
    default: return -1;
  }
}

// True if the fill puts `high` at this element: one element of the whole operand, or of each row.
bool stands_out(Fill fill, const ep_operand_desc& operand, const int64_t* index) {
  const int64_t* dims = operand.dims;
  const int32_t last = operand.rank - 1;
  if (fill == Fill::PEAKS) return index[last] == dims[last] - 1 - index[0] % dims[last];
  return fill == Fill::LAST &&
         std::equal(index, index + operand.rank, dims, [](int64_t i, int64_t n) { return i == n - 1; });
}

void fill_operand(const Values& values, const ep_operand_desc& operand, void* base, Random* random) {
  const DType dtype = type_of(operand);
  const std::vector<uint64_t> specials = is_floating(dtype) ? special_floats(dtype) : special_integers(dtype);
  for_each_element(operand, [&](int64_t number, int64_t place, const int64_t* index) {
    if (stands_out(values.fill, operand, index)) return reference::store<double>(dtype, base, place, values.high);
    if (values.fill == Fill::DIAGONAL && index[operand.rank - 1] == index[operand.rank - 2]) {
      const auto step = static_cast<double>(index[operand.rank - 1] + 1);
      return reference::store<double>(dtype, base, place, step * values.high);
    }
    const int64_t special = special_number(values.fill, number, static_cast<int64_t>(specials.size()));
    if (special >= 0) {
      const uint64_t bits = specials[static_cast<size_t>(special)];
      const bool beyond = values.fill == Fill::FINITE && !(std::fabs(decoded(dtype, bits)) <= values.high);
      if (!beyond) return put_bits(dtype, base, place, bits);
    }
    reference::store<double>(dtype, base, place, value_of(dtype, values, number, random));
  });
}

// --- poison ---

// The poison at element `number`: NaN, a huge number and a huge negative number in turn. If a kernel adds to poison,
// takes a minimum or maximum with it, or leaves it, at least one of three elements exceeds every tolerance.
uint64_t poison_bits(DType dtype, uint64_t number) {
  const uint64_t turn = number % 3;
  if (is_floating(dtype)) {
    return turn == 0 ? ~uint64_t{0} : encode_float(dtype, (turn == 1 ? 0.5 : -0.5) * greatest_finite(dtype));
  }
  return turn == 0 ? 0xa7a7a7a7a7a7a7a7 : turn == 1 ? 0x5a5a5a5a5a5a5a5a : 0x9696969696969696;
}

// Poisons the operand, the gaps between its elements, and the guards before and after it.
void poison_operand(const ep_operand_desc& operand, uint64_t offset, uint64_t first, Image* image) {
  const auto unit = static_cast<uint64_t>(std::max<int64_t>(dtype_size(type_of(operand)), 1));
  const auto bytes = static_cast<uint64_t>(dtype_bytes(type_of(operand), extent(operand)));
  uint64_t number = first;
  for (uint64_t at = offset - guard_bytes; at + unit <= offset + bytes + guard_bytes; at += unit) {
    const uint64_t bits = poison_bits(type_of(operand), number++);
    std::memcpy(image->bytes.data() + at, &bits, unit);
  }
}

}  // namespace

bool can_run_in_place(const ep_primitive_desc& desc) {
  const table::KindRow* row = table::kind_row(desc.kind);
  const ep_operand_desc* dst = descriptor::find_operand(desc, EP_ROLE_DST);
  const ep_operand_desc* src = row->alias == 0 ? nullptr : descriptor::find_operand(desc, row->alias);
  if (dst == nullptr || src == nullptr || dst->dtype != src->dtype || dst->rank != src->rank) return false;
  return std::memcmp(dst->dims, src->dims, sizeof(dst->dims)) == 0 &&
         std::memcmp(dst->strides, src->strides, sizeof(dst->strides)) == 0;
}

Image make_image(const ep_primitive_desc& desc, bool in_place, uint64_t turn) {
  Image image;
  uint64_t end = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    const bool alias = in_place && operand.role == table::kind_row(desc.kind)->alias;
    if (operand.flags & EP_OPERAND_FLAG_SCALAR || alias) {
      image.offsets.push_back(alias ? image.offsets[0] : 0);
      continue;
    }
    const auto unit = static_cast<uint64_t>(std::max<int64_t>(dtype_size(type_of(operand)), 1));
    end = (end + guard_bytes + 255) / 256 * 256;
    if (operand.alignment == 0) end += unit * (1 + 2 * (i % 3));
    image.offsets.push_back(end);
    end += static_cast<uint64_t>(dtype_bytes(type_of(operand), extent(operand)));
  }
  image.bytes.assign(end + guard_bytes, 0);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (image.offsets[i] != 0) poison_operand(desc.operands[i], image.offsets[i], turn, &image);
  }
  return image;
}

void fill_inputs(const Case& test, const ep_primitive_desc& desc, Image* image) {
  Random random(hash_text(test.name));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.flags & EP_OPERAND_FLAG_SCALAR || table::is_output(desc.kind, operand.role)) continue;
    fill_operand(test.values[i], operand, image->address(i), &random);
  }
}

}  // namespace tenon::cases
