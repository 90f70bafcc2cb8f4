// OpCall, the record of an op, and OpInfo, its row in the op table. The typed API, the dynamic call, the ONNX importer
// and autograd make OpCalls; interpreters take them. Rows are generated from core/ops/ops.yaml.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/call_site.h"
#include "core/device/export.h"
#include "core/ops/precision.h"
#include "core/tensor/scalar.h"
#include "core/tensor/tensor.h"
#include "primitives/status/status.h"

namespace tenon {

struct OpInfo;
struct SymCall;
struct SymMeta;
struct Patches;
class Lowering;

// The value that PrecisionScope has set for the calling thread. It is declared here, without a function, since every op
// reads it.
inline thread_local constinit Precision demanded_precision = Precision::stated;

// A scalar function that a product applies to each element of its result before storing it (ep_api.h, ep_epilogue).
struct Epilogue {
  const OpInfo* op = nullptr;  // an element-wise row, unary or binary, whose result has the dtype of its argument
  int16_t input = -1;          // for a binary op: the index in call.inputs of its second argument; -1: a launch scalar
  int16_t scalar = 0;          // the first launch scalar that it reads: its parameters, or its second argument
};

// An op applied to values. Borrowed for the call of Interpreter::apply.
struct OpCall {
  using Size = int64_t;
  using Meta = TensorMeta;

  const OpInfo* op = nullptr;
  // One per tensor parameter; null if an optional one is absent or if a scalar was given instead.
  std::span<const Tensor* const> inputs;
  // Launch scalars by ABI slot (ep_api.h): for a binary op `scalars[1]` replaces an absent inputs[1]. They are not part
  // of any cache key.
  std::span<const Scalar> scalars;
  // The op's generated attribute struct, or null. Part of the cache key.
  const void* attributes = nullptr;
  // The device on which a factory (full, arange) makes its result, or to which `to` moves it; null: the current device.
  // Null for other ops.
  DeviceState* device = nullptr;
  // Before the call a defined tensor is written in place (an in-place op or `out=`), an undefined one is made. After
  // the call all are defined.
  std::span<Tensor> outputs;
  // The precision that the program demands. Part of the cache key.
  Precision precision = demanded_precision;
  // For a product: the epilogues in order, at most EP_MAX_EPILOGUES. Their tensors are the last of `inputs`, in the
  // same order; they broadcast to the result. Part of the cache key.
  std::span<const Epilogue> epilogues = {};
  // The numbers of `attributes` that are expressions (sym_call.h); null: none. Only recorders see such calls.
  const Patches* patches = nullptr;

  template <class T>
  const T& attributes_as() const {
    return *static_cast<const T*>(attributes);
  }
};

// The form of an op, which decides how the interpreter handles it.
enum class OpForm : uint8_t {
  elementwise,  // one unary, binary or ternary primitive, given by `kind` and `scalar_op`; shapes broadcast
  view,         // shares its input's storage: `view` computes the metadata, nothing is launched
  kernel,       // one primitive: `infer`, then `lower`
  builtin,      // no primitive: the core's `run` allocates or moves the outputs that `infer` describes
  composite,    // written in other ops: `compose` calls them
};

// The inputs whose channels-last order the results of a kernel take. If these inputs are not channels-last, results are
// row-major.
enum class KeepsChannels : uint8_t { no, of_first_input, of_all_inputs };

constexpr uint16_t kNoOp = 0xffff;

// One row of the op table. Function pointers that a form does not need are null.
struct OpInfo {
  std::string_view name;  // "softmax"
  OpName named;           // also has the names of the tensor parameters
  OpName in_place = {};   // "add_" with the same parameters; empty if the op has no in-place form
  uint16_t id = 0;        // position in the table
  OpForm form = OpForm::composite;
  int32_t kind = 0;               // EP_PRIMITIVE_* for element-wise and kernel forms
  int32_t scalar_op = 0;          // for element-wise ops: id in its table of scalar_ops.def
  bool bool_result = false;       // for element-wise ops: the output is bool
  bool cond_first = false;        // for element-wise ops: inputs[0] is bool (where)
  uint16_t on_bool = kNoOp;       // for element-wise ops: id of the row that computes it if every argument is bool
  uint16_t alias_input = 0xffff;  // the input that an output may alias exactly; 0xffff: none
  uint32_t output_count = 1;      // 0: as many as call.outputs
  KeepsChannels keeps_channels = KeepsChannels::no;

  // The errors if one argument is bool, and if both are. Empty: bool is accepted.
  std::string_view refuses_bool;
  std::string_view refuses_bools;

  // Attribute structs are plain blocks of this many bytes without padding, hashed and compared as bytes.
  uint32_t attribute_bytes = 0;

  // For all forms except views and composites: writes dtype and dims of every output; the interpreter fills in the
  // strides. Sees metadata only.
  Status (*infer)(const OpCall& call, TensorMeta* outputs) = nullptr;
  // Like infer, for sizes that are expressions; for every form except composites. The arena of the sizes is open.
  Status (*infer_sizes)(const SymCall& call, SymMeta* outputs) = nullptr;
  // For a view: writes dtype, dims, strides, offset and the fields that follow from them directly into the output,
  // since copying them would cost as much as computing them.
  Status (*view)(const OpCall& call, TensorImpl* output) = nullptr;
  // For a view: `base` with `value` in place of the elements that the view sees; calls ops. `view` has the attributes.
  Tensor (*write)(const OpCall& view, const Tensor& base, const Tensor& value) = nullptr;
  // Describes the one primitive that computes the call. `outputs` has the metadata of the outputs.
  Status (*lower)(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) = nullptr;
  // Computes the op by other ops, for the ladder's second rung, and writes call.outputs. Null if the op has no
  // decomposition.
  void (*decompose)(const OpCall& call) = nullptr;
  // For a builtin: carries out the call, whose inputs have data.
  void (*run)(const OpCall& call) = nullptr;
  // For a composite: calls its functor, whose ops reach the current interpreter. Use compose() below instead.
  void (*compose)(const OpCall& call) = nullptr;
};

// The rows, in the order of ops.yaml.
TENON_API std::span<const OpInfo> op_table();

// Interpreter, the door: every op of every row passes through apply. An interpreter that wraps another one passes on
// the records that it does not carry out itself. If it splits a record into ops, these go to the other interpreter
// (compose, InterpreterScope).
class TENON_API Interpreter {
 public:
  virtual ~Interpreter() = default;
  // The name in errors: "the eager interpreter".
  virtual std::string name() const = 0;
  // Computes (or records) `call` and fills call.outputs. A composite arrives here only if this interpreter keeps it, or
  // if a wrapping interpreter keeps it and passes it on. Throws tenon::Error.
  virtual void apply(const OpCall& call) = 0;
  // True if a call of `op`, a composite, arrives at apply as one record. If false, the ops that it is written in
  // arrive. They also arrive if a list or text is too long for the record (8 numbers, 23 bytes).
  virtual bool keeps(const OpInfo& op) const;
  // True if this interpreter knows the value of a small host-side integer tensor now (eager always does, by waiting).
  virtual bool host_value_known(const Tensor& tensor) = 0;
};

// Carries out `call`, of a composite, by the ops that it is written in, which go to `below`.
TENON_API void compose(const OpCall& call, Interpreter& below);

// The eager interpreter, which computes each op when it is called. One serves all threads. core/interpreter defines it.
Interpreter& eager_interpreter();

// The calling thread's interpreter: of the innermost InterpreterScope, else of the process.
TENON_API Interpreter& current_interpreter();

// The interpreter of threads without an InterpreterScope: eager, until a tensor first wants a gradient (core/autograd).
// core/interpreter defines it.
extern std::atomic<Interpreter*> process_interpreter;

// Passes `call` to the current interpreter.
void submit(const OpCall& call);

// Sets the calling thread's interpreter for the life of the scope; `interpreter` must outlive it.
class TENON_API InterpreterScope {
 public:
  explicit InterpreterScope(Interpreter& interpreter);
  ~InterpreterScope();
  InterpreterScope(const InterpreterScope&) = delete;
  InterpreterScope& operator=(const InterpreterScope&) = delete;

 private:
  Interpreter* previous_;
};

}  // namespace tenon
