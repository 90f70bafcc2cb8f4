#include "core/symbolic/sym_dim.h"

#include <map>
#include <mutex>

#include "core/symbolic/arena.h"
#include "core/symbolic/evaluate.h"
#include "core/symbolic/range.h"
#include "primitives/text/format.h"

namespace tenon {
namespace symbolic {
namespace {

thread_local Arena* open_arena = nullptr;

// The arenas of recordings, by serial.
struct RecordingArenas {
  std::mutex mutex;
  std::map<uint32_t, Arena*> arenas;
};
RecordingArenas& recording_arenas() {
  static RecordingArenas all;
  return all;
}

// The open or recorded arena with that number, or null.
Arena* find_arena(uint32_t serial) {
  if (open_arena != nullptr && open_arena->serial() == serial) return open_arena;
  RecordingArenas& all = recording_arenas();
  const std::lock_guard lock(all.mutex);
  const auto found = all.arenas.find(serial);
  return found == all.arenas.end() ? nullptr : found->second;
}

}  // namespace

RecordingArena::RecordingArena(Arena& arena) : serial_(arena.serial()) {
  RecordingArenas& all = recording_arenas();
  const std::lock_guard lock(all.mutex);
  all.arenas[serial_] = &arena;
}

RecordingArena::~RecordingArena() {
  RecordingArenas& all = recording_arenas();
  const std::lock_guard lock(all.mutex);
  all.arenas.erase(serial_);
}

Arena& arena_of(SymDim size) {
  if (Arena* found = find_arena(size.serial())) return *found;
  throw Error(
      Code::invalid_argument,
      fmt::format("The size {} belongs to a recording that has finished, or to no recording.", to_string(size)));
}

ArenaScope::ArenaScope(Arena& arena) : previous_(open_arena) { open_arena = &arena; }
ArenaScope::~ArenaScope() { open_arena = previous_; }
Arena* current_arena() { return open_arena; }

}  // namespace symbolic

namespace {

symbolic::Arena& arena_for(SymDim a, SymDim b) {
  if (symbolic::Arena* found = symbolic::find_arena((a.is_number() ? b : a).serial())) return *found;
  if (symbolic::open_arena != nullptr) return *symbolic::open_arena;
  throw Error(Code::invalid_argument,
              fmt::format("The sizes {} and {} are combined, but no arena is open on this thread.", to_string(a),
                          to_string(b)));
}

bool numbers(SymDim a, SymDim b) { return a.is_number() && b.is_number(); }

SymDim checked(__int128 number, const char* what, SymDim a, SymDim b) {
  if (number >= SymDim::kLeast && number <= SymDim::kMost) return static_cast<int64_t>(number);
  throw Error(Code::invalid_argument,
              fmt::format("The {} of the sizes {} and {} is beyond 63 bits.", what, a.number(), b.number()));
}

}  // namespace

void SymDim::refuse_number(int64_t number) {
  throw Error(Code::invalid_argument, fmt::format("{} cannot be a size of a recorded program: sizes are from {} to {}.",
                                                  number, kLeast, kMost));
}

SymDim operator+(SymDim a, SymDim b) {
  if (numbers(a, b)) return checked(__int128{a.number()} + b.number(), "sum", a, b);
  return arena_for(a, b).add(a, b);
}

SymDim operator-(SymDim a, SymDim b) {
  if (numbers(a, b)) return checked(__int128{a.number()} - b.number(), "difference", a, b);
  return arena_for(a, b).add(a, b, -1);
}

SymDim operator*(SymDim a, SymDim b) {
  if (numbers(a, b)) return checked(__int128{a.number()} * b.number(), "product", a, b);
  return arena_for(a, b).multiply(a, b);
}

SymDim floor_div(SymDim a, SymDim b) {
  if (numbers(a, b) && b.number() != 0) return symbolic::floor_quotient(a.number(), b.number());
  return arena_for(a, b).floor_div(a, b);
}

SymDim modulo(SymDim a, SymDim b) {
  if (numbers(a, b) && b.number() != 0) return a - floor_div(a, b) * b;
  return arena_for(a, b).modulo(a, b);
}

// For a divisor of at least 1, a quotient rounded up can be written as one rounded down.
SymDim ceil_div(SymDim a, SymDim b) {
  if (numbers(a, b) && b.number() != 0) return symbolic::ceil_quotient(a.number(), b.number());
  symbolic::Arena& arena = arena_for(a, b);
  return arena.range(b).lo >= 1 ? floor_div(a + b - 1, b) : -floor_div(-a, b);
}

SymDim min_size(SymDim a, SymDim b) {
  if (numbers(a, b)) return a.number() < b.number() ? a : b;
  return arena_for(a, b).min(a, b);
}

SymDim max_size(SymDim a, SymDim b) {
  if (numbers(a, b)) return a.number() < b.number() ? b : a;
  return arena_for(a, b).max(a, b);
}

// A number other than 1 decides. For two expressions with hints, a guard says which one is 1; without hints the run
// finds out.
bool broadcast_size(SymDim a, SymDim b, SymDim* out) {
  if (identical(a, b) || identical(b, 1)) return *out = a, true;
  if (identical(a, 1)) return *out = b, true;
  if (numbers(a, b)) return false;
  symbolic::Arena& arena = arena_for(a, b);
  if (arena.known(a == 1) == true) return *out = b, true;
  if (arena.known(b == 1) == true) return *out = a, true;
  const bool hinted = arena.hint(arena.resolve(a)) && arena.hint(arena.resolve(b));
  if (hinted && arena.decide(a == 1)) return *out = b, true;
  if (hinted && arena.decide(b == 1)) return *out = a, true;
  if (!arena.require({Relation::broadcastable, a, b})) return false;
  const bool a_repeats = arena.known(a == 1) != false;
  const bool b_repeats = arena.known(b == 1) != false;
  *out = !a_repeats ? arena.resolve(a) : !b_repeats ? arena.resolve(b) : arena.broadcast(a, b);
  return true;
}

Condition::operator bool() const {
  if (numbers(a, b)) return symbolic::holds(relation, a.number(), b.number());
  return arena_for(a, b).decide(*this);
}

bool expect(const Condition& condition) {
  if (numbers(condition.a, condition.b)) return static_cast<bool>(condition);
  return arena_for(condition.a, condition.b).require(condition);
}

bool surely(const Condition& condition) {
  if (numbers(condition.a, condition.b)) return static_cast<bool>(condition);
  return arena_for(condition.a, condition.b).known(condition) == true;
}

Result<SymDims> checked(std::string_view op, const SymDims& dims) {
  for (const SymDim dim : dims) {
    if (expect(0 <= dim)) continue;
    return Status(Subject{op}, Code::invalid_argument, fmt::format("the shape {} has a negative dim ({}).", dims, dim));
  }
  return dims;
}

std::string to_string(SymDim size) {
  if (size.is_number()) return fmt::format("{}", size.number());
  if (const symbolic::Arena* arena = symbolic::find_arena(size.serial())) return arena->text(size);
  return fmt::format("expression {} of arena {}", size.index(), size.serial());
}

std::string to_string(const SymDims& dims) {
  std::string text = "[";
  for (int32_t axis = 0; axis < dims.rank(); ++axis) text += (axis > 0 ? ", " : "") + to_string(dims[axis]);
  return text + ']';
}

std::string to_string(const Condition& condition) {
  const SymDim size = condition.a.is_number() ? condition.b : condition.a;
  const symbolic::Arena* arena = size.is_number() ? symbolic::open_arena : symbolic::find_arena(size.serial());
  return arena == nullptr ? "a condition" : arena->text(condition);
}

}  // namespace tenon
