// What the record of an op looks like, as data: graphs are written to text, read back and verified by it. Generated
// from ops.yaml.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ops/op_call.h"

namespace tenon {

enum class AttributeType : uint8_t { i32, u32, i64, f64, dtype, dims, text };

// A field of the attribute struct.
struct AttributeField {
  std::string_view name;  // "axis"; "window.stride" inside a struct of the ABI
  AttributeType type = AttributeType::i32;
  uint32_t offset = 0;  // in bytes
  uint32_t count = 1;   // above 1: an array
};

// The inputs of a record, but for those of epilogues.
struct RecordShape {
  uint8_t required = 0;  // the first so many are given; of an elementwise op, as tensors or scalars
  uint8_t most = 0;
  bool listed = false;  // the last ones are a list, none of which is absent
};

// The fields, in the order of the struct; those that only fill it are left out.
std::span<const AttributeField> attribute_fields(const OpInfo& op);
// Of every op but a composite, whose record may lack any input.
RecordShape record_shape(const OpInfo& op);

}  // namespace tenon
