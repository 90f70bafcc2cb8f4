// SymDim: one size of a recorded program. It is a number, or an expression over symbols such as `4*S0 + 1`, which is
// stored in an Arena (arena.h).
//
// Arithmetic on numbers needs no arena. All other arithmetic uses the arena that is open on the calling thread
// (ArenaScope). It throws invalid_argument if there is none or if the size belongs to another arena. Comparing two
// sizes gives a Condition. When C++ converts it to bool (`if (a == b)`), the arena decides it, and may note a guard. So
// `==` asks a question about the program; identical() only compares the two words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

class SymDim {
 public:
  // The least and the greatest number of a SymDim.
  static constexpr int64_t kLeast = -(int64_t{1} << 62);
  static constexpr int64_t kMost = (int64_t{1} << 62) - 1;

  SymDim() = default;  // uninitialised, like an int64_t
  // Errors: invalid_argument for a number below kLeast or above kMost.
  SymDim(int64_t number) : word_(static_cast<uint64_t>(number) << 1) {
    if (number < kLeast || number > kMost) [[unlikely]]
      refuse_number(number);
  }
  // `number`, limited to kLeast .. kMost. For bounds of slices, where any number beyond the limits means "as far as
  // possible".
  static SymDim saturated(int64_t number) { return number < kLeast ? kLeast : number > kMost ? kMost : number; }
  // Expression `index` of the arena with the number `serial`. For Arena.
  static SymDim expression(uint32_t serial, uint32_t index) {
    SymDim size;
    size.word_ = static_cast<uint64_t>(serial) << 33 | static_cast<uint64_t>(index) << 1 | 1;
    return size;
  }

  bool is_number() const { return (word_ & 1) == 0; }
  int64_t number() const { return static_cast<int64_t>(word_) >> 1; }
  uint32_t serial() const { return static_cast<uint32_t>(word_ >> 33); }
  uint32_t index() const { return static_cast<uint32_t>(word_ >> 1); }
  uint64_t word() const { return word_; }

  SymDim& operator+=(SymDim other);
  SymDim& operator-=(SymDim other);
  SymDim& operator*=(SymDim other);

 private:
  [[noreturn]] static void refuse_number(int64_t number);

  uint64_t word_;  // bit 0 clear: 63 bits of number; set: 31 bits of serial and 32 bits of index
};
static_assert(sizeof(SymDim) == 8 && std::is_trivially_copyable_v<SymDim> && std::is_trivial_v<SymDim>);

using SymDims = BasicDims<SymDim>;

// Errors of arithmetic: invalid_argument (a coefficient that overflows, division by 0), unsupported (too
// large an expression: more than 256 terms, or more than 4,096 parts).
SymDim operator+(SymDim a, SymDim b);
SymDim operator-(SymDim a, SymDim b);
SymDim operator*(SymDim a, SymDim b);
inline SymDim operator-(SymDim a) { return 0 - a; }
inline SymDim& SymDim::operator+=(SymDim other) { return *this = *this + other; }
inline SymDim& SymDim::operator-=(SymDim other) { return *this = *this - other; }
inline SymDim& SymDim::operator*=(SymDim other) { return *this = *this * other; }

enum class Relation : uint8_t { eq, ne, lt, le, broadcastable };  // broadcastable: equal, or one of them is 1

// "a is related to b": a question, a guard or a check.
struct Condition {
  Relation relation = Relation::eq;
  SymDim a = 0;
  SymDim b = 0;

  // Asks Arena::decide.
  explicit operator bool() const;
};

inline Condition operator==(SymDim a, SymDim b) { return {Relation::eq, a, b}; }
inline Condition operator!=(SymDim a, SymDim b) { return {Relation::ne, a, b}; }
inline Condition operator<(SymDim a, SymDim b) { return {Relation::lt, a, b}; }
inline Condition operator<=(SymDim a, SymDim b) { return {Relation::le, a, b}; }
inline Condition operator>(SymDim a, SymDim b) { return {Relation::lt, b, a}; }
inline Condition operator>=(SymDim a, SymDim b) { return {Relation::le, b, a}; }

// Functions on sizes for rules, besides arithmetic and comparisons. primitives/infer/size.h has the same for numbers.
inline bool identical(SymDim a, SymDim b) { return a.word() == b.word(); }
// True if `condition` is known to hold. Never notes a guard, so false may also mean unknown.
bool surely(const Condition& condition);
// True if a rule's requirement holds. A requirement that only the run can decide becomes a check: Arena::require.
bool expect(const Condition& condition);
SymDim floor_div(SymDim a, SymDim b);  // rounded down
SymDim ceil_div(SymDim a, SymDim b);   // rounded up
SymDim modulo(SymDim a, SymDim b);     // a - b * floor_div(a, b), like Python's %
SymDim min_size(SymDim a, SymDim b);
SymDim max_size(SymDim a, SymDim b);
// Sets `out` to the broadcast length of `a` and `b`; false if they do not broadcast.
bool broadcast_size(SymDim a, SymDim b, SymDim* out);
inline SymDim clamp_size(SymDim a, SymDim lo, SymDim hi) { return min_size(max_size(a, lo), hi); }
inline bool add_overflows(SymDim a, SymDim b, SymDim* out) { return *out = a + b, false; }
inline bool mul_overflows(SymDim a, SymDim b, SymDim* out) { return *out = a * b, false; }

// `dims`, whose sizes are then known to be at least 0. The number of bytes is checked only when the program runs.
Result<SymDims> checked(std::string_view op, const SymDims& dims);

// "4*S0 + 1". Without an open arena, only "expression 7 of arena 3".
std::string to_string(SymDim size);
std::string to_string(const SymDims& dims);
std::string to_string(const Condition& condition);  // "S0 % 8 == 0"

}  // namespace tenon
#pragma GCC visibility pop
