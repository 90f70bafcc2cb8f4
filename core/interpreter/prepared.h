// Prepared: everything that the interpreter has computed about one signature (op, attributes, dtypes, shapes, strides,
// device). The next call with that signature only allocates and launches. Internal.
//
// Immutable, and shared by all threads that use the signature; the state that a thread adds (counters, its table entry)
// is private to the thread (tables.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/interpreter/execution_report.h"
#include "core/ops/op_call.h"
#include "core/primitive/lowering.h"
#include "core/primitive/primitive.h"
#include "core/primitive/primitive_cache.h"
#include "core/vm/call_note.h"

namespace tenon {

class CompiledCall;

// The source of an operand of the launch, and the dtype, dims and strides that the primitive sees.
struct PreparedOperand {
  int16_t input = -1;     // index into the call's inputs, or
  int16_t output = -1;    // index into its outputs, or neither: a scalar
  int32_t alignment = 0;  // the byte alignment that the device needs
  int64_t token = 0;      // the token of the device's own layout in which the primitive takes it; 0: strides
  DType dtype = DType::none;
  Dims dims;  // folded
  Dims strides;
};

struct Prepared {
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared();

  std::vector<uint64_t> key;  // CallKey's words
  const OpInfo* op = nullptr;
  DeviceState* device = nullptr;
  Rung rung = Rung::native;
  Sizes sizes = Sizes::open;       // the sizes that the caller requested
  std::string reason;              // why each higher rung was refused
  Primitive* primitive = nullptr;  // for the native rung; holds one reference
  uint32_t constants = 0;          // bit i: input i never changes; as requested
  int16_t packed_input = -1;       // the constant input that the primitive takes packed (constant.h); -1: none
  uint32_t dense_inputs = 0;       // bit i: input i is first copied to be contiguous
  bool reusable = true;            // false: scalars are baked into the primitive, which serves only this call
  bool placed = false;             // the device needs some operand better aligned than its element, or has layouts
  bool any_strides = false;        // the primitive also takes other strides above 1
  bool limited = false;            // the primitive limits the size of operands
  bool at_once = false;            // a launch needs only outputs, workspace and addresses, and is done when it returns
  std::vector<TensorMeta> outputs;
  // Not empty if the device refused the order of `outputs`: the outputs that the primitive writes instead. New results
  // are then copied into their order.
  std::vector<TensorMeta> row_major_outputs;
  std::vector<PreparedOperand> operands;
  std::vector<ep_shape> shapes;             // shapes of `operands`; empty if not at_once
  uint64_t operand_inputs = vm::kNoInputs;  // as in vm::CallNote
  uint32_t scalar_count = 0;
  DType scalar_dtypes[EP_MAX_SCALARS] = {};
  uint64_t workspace_bytes = 0;
  std::shared_ptr<const CompiledCall> compiled;  // for the compiled rung
  // For a rung that is used only until the device has compiled kernels for the call: the number of kernels not yet
  // ready. Null: the rung is final.
  std::shared_ptr<const std::atomic<uint32_t>> awaited;

  // For such a rung: the number of calls it serves before kernels are requested. Null: it does not count.
  std::shared_ptr<std::atomic<uint32_t>> calls_left;

  // True if preparing it again would give another result: the kernels that it awaited are ready or refused, or may now
  // be requested.
  bool outdated() const {
    return (awaited != nullptr && awaited->load(std::memory_order_acquire) == 0) ||
           (calls_left != nullptr && calls_left->load(std::memory_order_relaxed) == 0);
  }
  void count_call() const {
    if (calls_left == nullptr) return;
    uint32_t left = calls_left->load(std::memory_order_relaxed);
    while (left != 0 && !calls_left->compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
  }
  // The outputs as the primitive writes them.
  const std::vector<TensorMeta>& written() const { return row_major_outputs.empty() ? outputs : row_major_outputs; }
  // True if a run calls other ops.
  bool nested() const { return rung != Rung::native || dense_inputs != 0 || !row_major_outputs.empty(); }
  // The bytes that it holds. Includes its primitive, unless the primitive serves other shapes too.
  uint64_t bytes() const;
};

// How far down the ladder a call may go: as far as TENON_FALLBACK allows, or native only.
enum class Reach : uint8_t { setting, native_only };

// Prepares `call` on `device`. Reads only metadata, so inputs may lack data. `key` stays empty. With Sizes::numbers no
// primitive with open dims is used. Bit i of `constants`: input i never changes, and the primitive may want it packed
// (packed_input); a run then passes Constant::input_of in its place. Errors: those of the op's inference; unsupported
// when no allowed rung serves it, with every rung's reason.
Result<std::unique_ptr<Prepared>> prepare(const OpCall& call, DeviceState* device, Reach reach,
                                          Sizes sizes = Sizes::open, uint32_t constants = 0);

}  // namespace tenon
