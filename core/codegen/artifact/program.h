// Small integer programs: sizes, numbers of items and conditions, as functions of a kernel's parameters. A launch runs
// them (some tens of nanoseconds each); a file keeps them as text: "p0 768 mul 4095 add 4096 floor_div".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codegen/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// Rows: name, words that it takes off the stack and replaces by one.
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

  // What `size` is, with the parameters of `kernel`. Errors: invalid_argument, if it names anything else.
  static Result<Program> of(const Kernel& kernel, SymDim size);
  // 1 where all conditions hold, else 0.
  static Result<Program> all(const Kernel& kernel, std::span<const Condition> conditions);
  // ceil(this / divisor)
  Program chunks(int64_t divisor) const;

  // Errors: invalid_argument, for a division by 0, a result beyond int64, and too few parameters.
  Result<int64_t> run(std::span<const int64_t> parameters) const;

  // The words, with one space between two.
  std::string text() const;
  // The text may come from anywhere. Errors: invalid_argument, with the word and what is wrong with it.
  static Result<Program> parse(std::string_view text);
  // An expression of C on int64_t, with p[0], p[1], ... and the functions of the prelude (ep_least, ...).
  std::string c_text() const;

  friend bool operator==(const Program& a, const Program& b) { return a.code_ == b.code_; }

 private:
  struct Step {
    Word word = Word::number;
    int64_t number = 0;  // or the number of a parameter
    friend bool operator==(const Step&, const Step&) = default;
  };

  std::vector<Step> code_;
  friend class ProgramWriter;
};

}  // namespace tenon::codegen
