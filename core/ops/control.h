// Control flow at the door: the rows of cond, while_loop, scan and fused, and their calls. They are composites with
// functions among their arguments. An interpreter that records keeps them, and makes regions of the functions
// (core/graph/regions); under any other one the functions run. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/ops/op_call.h"
#include "core/ops/record_shape.h"
#include "core/tensor/tensor.h"

namespace tenon::control {

// fused: a function called once, which passes make of nodes that one kernel can compute.
enum class Kind : uint8_t { cond, while_loop, scan, fused };

// The numbers of a record. A cond and what is fused have none.
struct Attributes {
  int64_t carried = 0;  // scan: so many operands, and so many of the first results, go from step to step
  int64_t sliced = 0;   // scan: so many operands behind these are given slice by slice
  int64_t length = 0;   // scan: the number of steps, if nothing is sliced
  int64_t limited = 0;  // while_loop: 1 if it takes at most `most` steps
  int64_t most = 0;
};

// A row: what OpInfo says of it, and the names of its functions, which are those of its regions in texts.
struct Row {
  Kind kind = Kind::cond;
  OpInfo op;
  std::array<std::string_view, 2> bodies;
  size_t body_count = 1;
  size_t first = 0;  // the operands before this one are none of the functions' arguments
};

// core/graph/regions defines the rows.
std::span<const Row> rows();
const Row& row_of(const OpInfo& op);
const Row& row_of(Kind kind);
std::span<const AttributeField> attribute_fields();
inline bool is_control(const OpInfo& op) { return op.id == kNoOp; }

using Body = std::function<TensorList(const TensorList&)>;

// What the attributes of a call at the door point to. The operands of the call are the arguments of the functions.
struct Call {
  Attributes attributes;
  std::span<const Body> bodies;
  Interpreter* interpreter = nullptr;  // under which the functions run; it got the call first
  TensorList* results = nullptr;       // how many there are shows when the functions have run
};

}  // namespace tenon::control
