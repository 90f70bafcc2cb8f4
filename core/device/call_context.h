// CallContext: what a call depends on besides its arguments and the settings of the process. Internal.
//
// Each thread has one context, which is empty when the thread starts. Scopes set its fields and restore them; most are
// ContextScopes. Work that goes on in the background does not inherit the context of the thread that began it.
//
// Three parts stand where the lowest header that reads them is: the precision (demanded_precision in core/ops, which
// OpCall copies), the op and the program part that are worked for (call_site.h), and the arena of sizes
// (core/symbolic). The other thread-local variables of core are caches, counters and marks of Tenon's own threads, on
// which no result depends.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace tenon {

struct DeviceState;
class CancellationScope;
class ExecutionScope;
class HostWatch;
class Interpreter;
namespace autograd {
class Boundary;
class SlotWatch;
struct PackHook;
}  // namespace autograd
namespace global {
class SeenMoves;
struct GlobalProgram;
}  // namespace global

struct CallContext {
  // ---- where ops run ----
  DeviceState* device = nullptr;  // Device::set_current; null: the default device
  static constexpr uint16_t kStreams = 64;
  std::array<uint16_t, kStreams> streams{};  // the current stream of each device, by spelling_number
  Interpreter* interpreter = nullptr;        // InterpreterScope; null: the process's
  bool everywhere = false;                   // tensors made without inputs are the same on all ranks (recording.h)
  bool compiles = true;                      // false: questions about rungs start no compilation (compiled_call.h)
  bool records_pattern = false;              // an op is being recorded for the compiled rung and must not take it

  // ---- gradients ----
  bool inference = false;                                       // InferenceMode
  bool creating_graph = false;                                  // backward(create_graph)
  const autograd::Boundary* boundary = nullptr;                 // null: nothing is being recorded (engine.h)
  const autograd::PackHook* pack_hook = nullptr;                // null: tensors are kept unchanged (saved.h)
  autograd::SlotWatch* slot_watch = nullptr;                    // observes gradients of leaves (leaf.h)
  const std::function<std::string()>* anomaly_notes = nullptr;  // DetectAnomaly's function, which may be empty

  // ---- recording ----
  HostWatch* host_watch = nullptr;                  // observes accesses to data on the host (host_watch.h)
  global::GlobalProgram* global_program = nullptr;  // the program of global tensors that is recorded (global_program.h)
  global::SeenMoves* seen_moves = nullptr;          // lists the moves between placements (redistribution.h)

  // ---- reports and ends ----
  ExecutionScope* execution = nullptr;              // the innermost; lists what computed each op
  uint64_t* moved_bytes = nullptr;                  // counts the bytes that decomposed ops copy (ladder.cpp)
  const CancellationScope* cancellation = nullptr;  // the innermost
};

inline thread_local constinit CallContext call_context{};

// Sets one field of the calling thread's context while it lives:
//     const ContextScope<&CallContext::creating_graph> scope(true);
template <auto field>
class ContextScope {
 public:
  using Value = std::remove_reference_t<decltype(std::declval<CallContext&>().*field)>;

  explicit ContextScope(Value value) : before_(std::exchange(call_context.*field, value)) {}
  ~ContextScope() { call_context.*field = before_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Value before_;
};

}  // namespace tenon
