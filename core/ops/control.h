// Control flow at the door: the rows of cond, while_loop, scan and fused, and their calls. They are composites with
// functions among their arguments. An interpreter that records keeps them, and makes regions from the functions
// (core/graph/regions); under any other interpreter the functions run. Internal.
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

// fused: a function called once; passes make it from nodes that one kernel can compute.
enum class Kind : uint8_t { cond, while_loop, scan, fused };

// The numbers of a record. cond and fused use none.
struct Attributes {
  int64_t carried = 0;  // scan: the number of operands, and of the first results, that are passed from step to step
  int64_t sliced = 0;   // scan: the number of operands after these that are passed slice by slice
  int64_t length = 0;   // scan: the number of steps, if nothing is sliced
  int64_t limited = 0;  // while_loop: 1 if it makes at most `most` steps
  int64_t most = 0;
};

// A row: its OpInfo and the names of its functions, which are also the names of its regions in texts.
struct Row {
  Kind kind = Kind::cond;
  OpInfo op;
  std::array<std::string_view, 2> bodies;
  size_t body_count = 1;
  size_t first = 0;  // operands before this one are not passed to the functions
};

// core/graph/regions defines the rows.
std::span<const Row> rows();
const Row& row_of(const OpInfo& op);
const Row& row_of(Kind kind);
std::span<const AttributeField> attribute_fields();
inline bool is_control(const OpInfo& op) { return op.id == kNoOp; }

using Body = std::function<TensorList(const TensorList&)>;

// At the door, OpCall::attributes of a control flow call points to one of these. The operands of the call are the
// arguments of the functions.
struct Call {
  Attributes attributes;
  std::span<const Body> bodies;
  Interpreter* interpreter = nullptr;  // the interpreter that got the call first; the functions run under it
  TensorList* results = nullptr;       // their number is known only after the functions have run
};

}  // namespace tenon::control
