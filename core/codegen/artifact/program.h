// Small integer programs over a kernel's parameters: sizes, numbers of items, conditions. Each launch runs them. As
// text: "p0 768 mul 4095 add 4096 floor_div".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// Rows: name, and the number of values that the word replaces on the stack by one.
enum class Word : uint8_t {
  number,
  parameter,
  add,
  sub,
  mul,
  floor_div,
  ceil_div,
  mod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  both
};

class Program {
 public:
  // The number 0.
  Program() : code_{{Word::number, 0}} {}

  // The program that computes `size` from the parameters of `kernel`. Errors: invalid_argument if `size` uses other
  // symbols.
  static Result<Program> of(const Kernel& kernel, SymDim size);
  // The program that gives 1 if all conditions hold, else 0.
  static Result<Program> all(const Kernel& kernel, std::span<const Condition> conditions);
  // ceil(this / divisor)
  Program chunks(int64_t divisor) const;

  // Errors: invalid_argument for a division by 0, a result beyond int64, or too few parameters.
  Result<int64_t> run(std::span<const int64_t> parameters) const;

  // The words, separated by single spaces.
  std::string text() const;
  // Parses untrusted text. Errors: invalid_argument, with the word and the reason.
  static Result<Program> parse(std::string_view text);
  // A C expression on int64_t that reads p[0], p[1], ... and calls functions of the prelude (ep_least, ...).
  std::string c_text() const;

  friend bool operator==(const Program& a, const Program& b) { return a.code_ == b.code_; }

 private:
  struct Step {
    Word word = Word::number;
    int64_t number = 0;  // a number, or the index of a parameter
    friend bool operator==(const Step&, const Step&) = default;
  };

  std::vector<Step> code_;
  friend class ProgramWriter;
};

}  // namespace tenon::codegen
