// The form of an op's record, as data: used to write graphs as text, read them back and verify them. Generated from
// ops.yaml.
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

// The inputs of a record, without the inputs of epilogues.
struct RecordShape {
  uint8_t required =
      0;  // the number of leading inputs that must be given; for an element-wise op, as tensors or scalars
  uint8_t most = 0;
  bool listed = false;  // the last inputs are a list, and every input of it is present
};

// The fields in the order of the struct, without padding fields.
std::span<const AttributeField> attribute_fields(const OpInfo& op);
// For every op except composites, whose records may lack any input.
RecordShape record_shape(const OpInfo& op);

}  // namespace tenon
