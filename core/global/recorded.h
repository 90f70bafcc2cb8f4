// Recorded: global tensors while the calling thread records a program. Then the part of this rank is a value of the
// program, ops on parts go to the interpreter that records, and what ranks give each other becomes nodes (exchange.h).
// Internal.
#pragma once

#include <cstdint>
#include <utility>

#include "core/ops/op_call.h"

namespace tenon::global {

struct Recorded {
  Interpreter& parts;   // what records the ops on parts
  uint64_t number = 0;  // that GlobalValue::program has of the tensors of this program; above 0
  // The token of the last exchange, which the next one reads, so that their order is a fact of the program.
  Tensor token = {};
  bool ended = false;  // the function goes on eagerly
  // A clock: how many global tensors were made and written. What a rank takes part in comes in one order on all ranks.
  // Exchanges say at which time what they carry was ready; kNow: when they were recorded.
  static constexpr int64_t kNow = -1;
  int64_t time = 0, ready = kNow;
};

inline thread_local constinit Recorded* recorded_program = nullptr;

// That of the calling thread; null: it computes.
inline Recorded* current_program() {
  return recorded_program == nullptr || recorded_program->ended ? nullptr : recorded_program;
}
// What ops on parts go to.
inline Interpreter& parts_interpreter() {
  Recorded* program = current_program();
  return program == nullptr ? eager_interpreter() : program->parts;
}

// Makes `program` that of the calling thread for its life; null: none.
class RecordedScope {
 public:
  explicit RecordedScope(Recorded* program) : previous_(std::exchange(recorded_program, program)) {}
  ~RecordedScope() { recorded_program = previous_; }
  RecordedScope(const RecordedScope&) = delete;
  RecordedScope& operator=(const RecordedScope&) = delete;

 private:
  Recorded* previous_;
};

}  // namespace tenon::global
