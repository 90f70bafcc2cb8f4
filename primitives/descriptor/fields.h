// The fields of the attribute structs, as data. to_string prints them, parse_descriptor reads them, and
// check_descriptor checks their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::descriptor {

// The text form of a field: a number, or the name of something that has an id.
enum class FieldType : uint8_t {
  I32,
  MASK,
  I64,
  UNARY,
  BINARY,
  TERNARY,
  REDUCE,
  POOLING,
  GATHER,
  PAD,
  SCATTER,
  RANDOM,
  SCAN,
  UNIQUE,
  ATTENTION,
  ROTARY,
  RESIZE,
  CELL,
  FFT,
  LINEAR,
  F64  // a double; get_field and set_field use its bits
};

struct Field {
  int32_t kind;
  std::string_view name;
  size_t offset;  // in ep_attributes
  FieldType type;
  int32_t count;  // above 1: an array
};

std::span<const Field> fields();

inline size_t field_size(const Field& field) {
  return field.type == FieldType::I64 || field.type == FieldType::F64 ? 8 : 4;
}
int64_t get_field(const ep_attributes& attributes, const Field& field, int32_t index);
void set_field(ep_attributes& attributes, const Field& field, int32_t index, int64_t value);

// "relu" for 7 of a UNARY field; the number itself where the id has no name.
std::string value_text(FieldType type, int64_t value);
Result<int64_t> value_from_text(FieldType type, std::string_view text);
// True if `value` is one of the names of the field's type, or the type is a plain number.
bool is_known(FieldType type, int64_t value);

}  // namespace tenon::descriptor
