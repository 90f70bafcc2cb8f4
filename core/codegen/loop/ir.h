// Loop IR: one kernel as stages over axes, and the loops that run them.
//
// An axis runs from 0 to its extent - 1. A stage computes one number for each point of its spatial axes: a value, a
// reduction over further axes, or an element that it stores. Stages read buffers, and stages before them at the same
// point. Without loops a kernel is unscheduled: its stages run one after another, whole. Schedule primitives
// (core/codegen/schedule) give it loops and storage, and never change what it computes.
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
// Sizes, extents and indices are SymDims of the kernel's arena, where parameters and axes are symbols. So the arena
// simplifies them by ranges and divisors. Whoever makes or reads them keeps an ArenaScope of `kernel.arena` open.
#pragma once

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

// An integer that a launch gives: one int64 of the entry's parameters, in the order of Kernel::parameters.
struct Parameter {
  std::string name;  // a C identifier, unique in the kernel, as all names here are
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
  SymDim elements = 0;  // from its address on
  bool output = false;  // written, never read; the others are read, never written
};

enum class ExprKind : uint8_t { constant, index, load, stage, unary, binary, ternary, cast, position };

// An expression. Its dtype is that of its result; arguments of an op have one dtype, but for where's condition. f16 and
// bf16 only load, store and cast: an op on them is an op on f32 between casts.
struct Expr {
  ExprKind kind = ExprKind::constant;
  DType dtype = DType::none;
  int32_t op = 0;     // unary, binary, ternary: the row of scalar_ops.def
  Id target = kNone;  // load, position: the buffer; stage: the stage
  SymDim index = 0;   // load: the element; index: the number, as an i64
  // position: args[0], an i64 from buffer `target`, as a position among args[1] elements: a negative one counts from
  // the end; one that is outside is a fault and gives 0.
  std::array<Id, 3> args{kNone, kNone, kNone};  // load: args[0] may be a bool; where it is false nothing is read: 0
  double a = 0, b = 0;                          // constant: a, of a floating dtype; unary: the row's parameters
  int64_t integer = 0;                          // constant of an integer dtype or bool; u64: its bits
};

enum class StageKind : uint8_t { value, reduce, store };

// Where the numbers of a stage stay between the loops that write and those that read them.
//   inlined    nowhere: they are computed again where they are read (value stages alone)
//   registers  in the loop that encloses the writer and all readers: they share the innermost loop
//   row        in an array in the local memory of the item, over the loops that writer and readers do not share
//   shared     in an array that the work-items of a group share, over all loops inside of the items loop
enum class Storage : uint8_t { inlined, registers, row, shared };

struct Stage {
  std::string name;
  StageKind kind = StageKind::value;
  DType dtype = DType::none;    // of the result; a store: that of the buffer
  std::vector<Id> axes;         // spatial
  std::vector<Id> reduce_axes;  // reduce: at least one
  int32_t op = 0;               // reduce: the row of EP_REDUCE, with its map and finish
  Id value = kNone;             // the expression
  Id buffer = kNone;            // store
  SymDim index = 0;             // store: the element; no two points have the same
  Storage storage = Storage::registers;
};

enum class LoopKind : uint8_t { items, serial, vector, work_items };

// A statement of the scheduled form: a loop, or, where `stage` is set, one step of a stage at the current point, or a
// barrier.
//
// A loop runs over the part of its axis that the loop around it on the same axis left (at first the whole axis), in
// steps: `step` positions are left to the loops inside. A loop of step 1 is the innermost on its axis. A vector loop
// takes as many positions at once as the dialect has lanes, `unroll` vectors in a row. The items loop is the outermost
// loop, and the only one of its kind: its steps are the items of a launch. Where items have several positions, `unroll`
// of them that one call computes may run as one, with so many times the positions.
//
// On a device of groups an item is a group. A loop of kind work_items deals its steps to `width` work-items along dim 0
// or 1 of the group: number w takes step w, step w + width and so on. A loop inside of it over the same axis is a pack
// where it is serial: positions that lie side by side, so that they are one access where memory is contiguous along the
// axis. All work-items run what no such loop along a dim is
// around, and a store there is that of the first along the dim. A reduction over such a loop has one result, which all
// work-items along its dim get after the loop. What a work-item wrote into shared storage is there for the others
// behind the next barrier. A barrier, and a reduction over work-items, is for all of the group: a loop of work_items
// around one has step 1 and as many positions left as it has work-items, and so runs once.
struct Node {
  Id axis = kNone;
  LoopKind kind = LoopKind::serial;
  int64_t step = 1;
  int64_t unroll = 1;
  int64_t width = 1;  // of a loop of work_items: a power of two
  int64_t dim = 0;
  std::vector<Node> body;
  Id stage = kNone;
  bool is_barrier = false;

  bool is_loop() const { return stage == kNone && !is_barrier; }
};

struct Kernel {
  explicit Kernel(std::string kernel_name = "kernel") : name(std::move(kernel_name)), arena("kernel " + name) {}
  // With the sizes of a recorded program: `sizes` is copied, and its SymDims mean the same here.
  Kernel(std::string kernel_name, const symbolic::Arena& sizes) : name(std::move(kernel_name)), arena(sizes) {}
  Kernel(const Kernel&) = default;
  Kernel(Kernel&&) = default;
  Kernel& operator=(Kernel other);

  std::string name;
  symbolic::Arena arena;
  std::vector<Parameter> parameters;
  std::vector<Axis> axes;
  std::vector<Buffer> buffers;
  std::vector<Expr> exprs;    // arguments come before what uses them
  std::vector<Stage> stages;  // what is read comes before what reads it
  std::vector<Node> body;     // the loops; empty: unscheduled

  bool scheduled() const { return !body.empty(); }

  // They open the arena themselves, and throw Error as its arithmetic does. Names are taken as they are: the verifier
  // refuses bad ones.
  SymDim add_parameter(std::string parameter_name, int64_t least, int64_t most, int64_t divisor = 1);
  void add_parameter(std::string parameter_name, SymDim symbol);  // a symbol of the arena that was copied
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

// The work-items of a group of a scheduled kernel along each dim; {1, 1} where it has no such loops.
std::array<int64_t, 2> group_of(const Kernel& kernel);

// How many arguments an expression of this kind has (a load: its condition, if it has one).
size_t arg_count(const Expr& expr);

// What an op is called: its row in scalar_ops.def.
std::string_view op_name(const Expr& expr);

// `size` with symbols replaced, by the arena's node of the symbol; everything else is made anew in the open arena,
// which simplifies it.
SymDim substitute(const symbolic::Arena& arena, SymDim size, const std::map<uint32_t, SymDim>& replacements);

// The symbols (by their nodes) that `size` names.
std::set<uint32_t> symbols_of(const symbolic::Arena& arena, SymDim size);

// How `index` grows with the axis `symbol`: a number, or nothing where it is not a multiple of it plus what does not
// name it. An index that does not name it has 0; a stride that is a size is an expression, made in the open arena.
struct Stride {
  bool linear = false;
  SymDim step = 0;
};
Stride stride_of(const symbolic::Arena& arena, SymDim index, SymDim symbol);

// The kernel as text, and back. Two kernels of equal text compute the same.
std::string to_string(const Kernel& kernel);
// Errors: invalid_argument, with the line and what was expected there. The result is verified.
Result<Kernel> parse_kernel(std::string_view text);

// Whether the kernel is well made: names, dtypes, axes, indices within their buffers as far as ranges tell, and, if it
// is scheduled, loops that compute each point of each stage once, after what it reads, from storage that still holds
// it. Errors: invalid_argument, with the stage and what is wrong with it.
Status verify(const Kernel& kernel);

}  // namespace tenon::codegen
