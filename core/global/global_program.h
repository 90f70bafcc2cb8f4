// GlobalProgram: global tensors while the calling thread records a program. Each part is then a value of the program,
// the recorder gets the ops on parts, and exchanges become nodes (exchange.h). Internal.
#pragma once

#include <cstdint>

#include "core/device/call_context.h"
#include "core/ops/op_call.h"

namespace tenon::global {

struct GlobalProgram {
  Interpreter& parts;   // records the ops on parts
  uint64_t number = 0;  // equal to GlobalValue::program of this program's tensors; above 0
  // The token of the last exchange. The next exchange reads it, which fixes the order.
  Tensor token = {};
  bool ended = false;  // the function continues eagerly
  // A clock: the number of global tensors made and written so far. Events that involve a rank have the same order on
  // all ranks. An exchange states when its elements were ready; kNow is the time of recording.
  static constexpr int64_t kNow = -1;
  int64_t time = 0, ready = kNow;
};

// The program that the calling thread records; null: none.
inline GlobalProgram* current_program() {
  GlobalProgram* program = call_context.global_program;
  return program == nullptr || program->ended ? nullptr : program;
}
// The interpreter for ops on parts.
inline Interpreter& parts_interpreter() {
  GlobalProgram* program = current_program();
  return program == nullptr ? eager_interpreter() : program->parts;
}

// Sets the program of the calling thread for the life of the scope; null: none.
using GlobalProgramScope = ContextScope<&CallContext::global_program>;

}  // namespace tenon::global
