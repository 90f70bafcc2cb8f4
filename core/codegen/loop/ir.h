// Loop IR: one kernel as stages over axes, and the loops that run them.
//
// An axis runs from 0 to its extent - 1. A stage computes one number for each point of its spatial axes: a value, a
// reduction over further axes, or an element that it stores. A stage reads buffers, and earlier stages at the same
// point. Without loops a kernel is unscheduled: its stages run one after another, each over all its points. Schedule
// primitives (core/codegen/schedule) give it loops and storage, and never change what it computes.
//
//   kernel rms_norm
//   size n in [0, 65536]
//   axis i n
//   axis r 768
//   in x f32 768*n
//   in w f32 768
//   out y f32 768*n
//   s = sum f32 at i over r: square(x[768*i + r])
//   t = value f32 at i: rsqrt(add(div(s, 768:f32), 1e-06:f32))
//   u = store y[768*i + r] at i r: mul(mul(x[768*i + r], t), w[r])
//
// Sizes, extents and indices are SymDims of the kernel's arena. Parameters and axes are symbols of it, so the arena
// simplifies sizes by their ranges and divisors. Code that makes or reads sizes keeps an ArenaScope of `kernel.arena`
// open.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/symbolic/arena.h"
#include "core/symbolic/sym_dim.h"
#include "primitives/dtype/dtype.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

using Id = uint32_t;
constexpr Id kNone = std::numeric_limits<Id>::max();

inline bool contains(const std::vector<Id>& list, Id id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

// An integer that a launch passes: one int64 of the entry's parameters, in the order of Kernel::parameters.
struct Parameter {
  std::string name;  // a C identifier, unique in the kernel, like all names here
  SymDim symbol = 0;
};

struct Axis {
  std::string name;
  SymDim symbol = 0;  // the position on the axis
  SymDim extent = 0;  // a number or an expression over parameters; at least 0
};

struct Buffer {
  std::string name;
  DType dtype = DType::none;
  SymDim elements = 0;  // number of elements
  bool output = false;  // true: only written; false: only read
};

enum class ExprKind : uint8_t { constant, index, load, stage, unary, binary, ternary, cast, position };

// An expression. `dtype` is the dtype of its result. All arguments of an op have one dtype, except the condition of
// `where`. f16 and bf16 only load, store and cast; an op on them is written as an f32 op between casts.
struct Expr {
  ExprKind kind = ExprKind::constant;
  DType dtype = DType::none;
  int32_t op = 0;     // unary, binary, ternary: the id in scalar_ops.def
  Id target = kNone;  // load, position: the buffer; stage: the stage
  SymDim index = 0;   // load: the element; index: the number, as an i64
  // position: args[0] is an i64 from buffer `target`, used as a position among args[1] elements. A negative position
  // counts from the end; a position out of range raises a fault and gives 0.
  // load: args[0] may be a bool; if it is false, nothing is read and the result is 0
  std::array<Id, 3> args{kNone, kNone, kNone};
  double a = 0, b = 0;  // constant of a floating dtype: a; unary: the parameters of the op
  int64_t integer = 0;  // constant of an integer dtype or bool; for u64 its bits
};

enum class StageKind : uint8_t { value, reduce, store };

// Where the numbers of a stage are kept between the loops that write and those that read them.
//   inlined    nowhere: each reader computes them again (value stages only)
//   registers  in the loop that encloses the writer and all readers: they share the innermost loop
//   row        in an array in the item's local memory, over the loops that the writer and the readers do not share
//   shared     in an array that the work-items of a group share, over all loops inside of the items loop
enum class Storage : uint8_t { inlined, registers, row, shared };

struct Stage {
  std::string name;
  StageKind kind = StageKind::value;
  DType dtype = DType::none;    // the dtype of the result; for a store the dtype of the buffer
  std::vector<Id> axes;         // spatial
  std::vector<Id> reduce_axes;  // reduce: at least one
  int32_t op = 0;               // reduce: the id in EP_REDUCE, with its map and finish
  Id value = kNone;             // the expression
  Id buffer = kNone;            // store
  SymDim index = 0;             // store: the element; differs between any two points
  Storage storage = Storage::registers;
};

enum class LoopKind : uint8_t { items, serial, vector, work_items };

// A statement of the scheduled form: a loop, or, if `stage` is set, one step of a stage at the current point, or a
// barrier.
//
// A loop runs over the part of its axis that the enclosing loop on the same axis left (at first the whole axis), in
// steps: `step` positions are left to the loops inside. A loop of step 1 is the innermost on its axis. A vector loop
// takes as many positions at once as the dialect has lanes, `unroll` vectors in a row. The items loop is the outermost
// loop, and the only one of its kind: its steps are the items of a launch. If items have several positions, a call that
// computes `unroll` items may run them as one item with `unroll` times the positions.
//
// On a device of groups an item is a group. A loop of kind work_items distributes its steps over `width` work-items
// along dim 0 or 1 of the group: number w takes step w, step w + width and so on. A serial loop inside of it over the
// same axis is a pack: adjacent positions, which are one access if memory is contiguous along the axis. Code that is in
// no such loop along a dim runs on all work-items of the dim; a store there is done by the first work-item along the
// dim. A reduction over such a loop has one result, which all work-items along its dim get after the loop. Data that a
// work-item writes into shared storage is visible to the others after the next barrier. All work-items of a group must
// reach a barrier or a reduction over work-items. So a loop of work_items around one has step 1 and as many positions
// left as it has work-items, and runs once.
struct Node {
  Id axis = kNone;
  LoopKind kind = LoopKind::serial;
  int64_t step = 1;
  int64_t unroll = 1;
  int64_t width = 1;  // lanes of a work_items loop: a power of two
  int64_t dim = 0;
  std::vector<Node> body;
  Id stage = kNone;
  bool is_barrier = false;

  bool is_loop() const { return stage == kNone && !is_barrier; }
};

struct Kernel {
  explicit Kernel(std::string kernel_name = "kernel") : name(std::move(kernel_name)), arena("kernel " + name) {}
  // A kernel with the sizes of a recorded program: `sizes` is copied, and its SymDims keep their meaning here.
  Kernel(std::string kernel_name, const symbolic::Arena& sizes) : name(std::move(kernel_name)), arena(sizes) {}
  Kernel(const Kernel&) = default;
  Kernel(Kernel&&) = default;
  Kernel& operator=(Kernel other);

  std::string name;
  symbolic::Arena arena;
  std::vector<Parameter> parameters;
  std::vector<Axis> axes;
  std::vector<Buffer> buffers;
  std::vector<Expr> exprs;    // arguments come before their users
  std::vector<Stage> stages;  // stages come before their readers
  std::vector<Node> body;     // the loops; empty: unscheduled

  bool scheduled() const { return !body.empty(); }

  // These functions open the arena themselves, and throw Error as its arithmetic does. They do not check names;
  // verify() does.
  SymDim add_parameter(std::string parameter_name, int64_t least, int64_t most, int64_t divisor = 1);
  void add_parameter(std::string parameter_name, SymDim symbol);  // a symbol of the copied arena
  Id add_axis(std::string axis_name, SymDim extent);
  Id add_buffer(std::string buffer_name, DType dtype, SymDim elements, bool output);
  SymDim at(Id axis) const { return axes[axis].symbol; }

  Id constant(DType dtype, double number);
  Id constant_integer(DType dtype, int64_t number);
  Id index(SymDim number);
  Id load(Id buffer, SymDim element, Id where = kNone);
  Id read(Id stage);
  Id unary(std::string_view op, Id x, double a = 0, double b = 0);
  Id binary(std::string_view op, Id x, Id y);
  Id ternary(std::string_view op, Id x, Id y, Id z);
  Id cast(DType dtype, Id x);
  Id position(Id x, Id count, Id buffer);

  Id add_value(std::string stage_name, std::vector<Id> spatial, Id expr);
  Id add_reduce(std::string stage_name, std::string_view op, std::vector<Id> spatial, std::vector<Id> over, Id expr);
  Id add_store(std::string stage_name, Id buffer, SymDim element, std::vector<Id> spatial, Id expr);
};

// The number of work-items of a group of a scheduled kernel along each dim; {1, 1} if it has no loops of work_items.
std::array<int64_t, 2> group_of(const Kernel& kernel);

// Number of arguments of an expression of this kind (of a load: 1 if it has a condition).
size_t arg_count(const Expr& expr);

// The name of an op in scalar_ops.def.
std::string_view op_name(const Expr& expr);

// `size` with symbols replaced, by the arena's node of the symbol. The result is made in the open arena, which
// simplifies it.
SymDim substitute(const symbolic::Arena& arena, SymDim size, const std::map<uint32_t, SymDim>& replacements);

// The symbols (by their nodes) that `size` names.
std::set<uint32_t> symbols_of(const symbolic::Arena& arena, SymDim size);

// How `index` depends on the axis `symbol`. It is linear if it is a multiple of `symbol` plus a term without it; `step`
// is the factor, 0 if `index` does not contain `symbol`. The factor may be an expression, made in the open arena.
struct Stride {
  bool linear = false;
  SymDim step = 0;
};
Stride stride_of(const symbolic::Arena& arena, SymDim index, SymDim symbol);

// The kernel as text. Two kernels with equal texts compute the same.
std::string to_string(const Kernel& kernel);
// Parses and verifies a kernel. Errors: invalid_argument, with the line and what was expected there.
Result<Kernel> parse_kernel(std::string_view text);

// Checks that the kernel is well formed: names, dtypes, axes, and indices within their buffers as far as ranges can
// prove it. The loops of a scheduled kernel must compute each point of each stage once, after its inputs, from storage
// that still holds them. Errors: invalid_argument, with the stage and the reason.
Status verify(const Kernel& kernel);

}  // namespace tenon::codegen
