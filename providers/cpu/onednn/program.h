// Program: a few oneDNN primitives run one after the other over the operands of a launch, with its workspace between
// them. It is what every primitive of onednn/ is made of: a reorder into the layout oneDNN likes, the work, a reorder
// back, or the work alone.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/onednn/version.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Where a memory object of the program finds its bytes at launch.
enum class Place : uint8_t { operand, workspace, scalar };

struct ProgramMemory {
  dnnl::memory::desc desc;
  Place place = Place::operand;
  uint64_t where = 0;  // operand number, offset in the workspace, or scalar slot
};

struct ProgramArgument {
  int32_t name;    // DNNL_ARG_*
  int32_t memory;  // index into the program's memories
};

struct ProgramStep {
  dnnl::primitive primitive;
  std::vector<ProgramArgument> arguments;
};

// Collects memories and steps; then given to make_primitive<OneDnnPrimitive>.
class Program {
 public:
  explicit Program(const dnnl::engine& engine) : engine_(engine) {}

  int32_t operand(int32_t index, const dnnl::memory::desc& desc) {
    return add({desc, Place::operand, static_cast<uint64_t>(index)});
  }
  // The f32 value of launch scalar `slot`.
  int32_t scalar(uint32_t slot, const dnnl::memory::desc& desc) { return add({desc, Place::scalar, slot}); }
  // Room in the workspace.
  int32_t temporary(const dnnl::memory::desc& desc);
  // A step of `desc`, to which its scratchpad is added.
  void step(const dnnl::primitive_desc_base& desc, std::vector<ProgramArgument> arguments);
  // `memory` in the layout of `desc`: itself where they agree, else a temporary and the reorder that fills it.
  int32_t reordered(int32_t memory, const dnnl::memory::desc& desc);

  const dnnl::memory::desc& desc_of(int32_t memory) const { return memories_[static_cast<size_t>(memory)].desc; }
  const dnnl::engine& engine() const { return engine_; }
  const std::vector<ProgramMemory>& memories() const { return memories_; }
  const std::vector<ProgramStep>& steps() const { return steps_; }
  // Bytes the steps need beside the operands; little is kept with the memory objects, so that small launches need no
  // workspace of the host. (oneDNN's own scratchpad cannot be used: a primitive would be bound to the thread it was
  // made on.)
  bool keeps_own_room() const { return workspace_bytes_ <= own_room_limit; }
  uint64_t room_bytes() const { return workspace_bytes_; }
  uint64_t workspace_bytes() const { return keeps_own_room() ? 0 : workspace_bytes_; }
  uint64_t host_bytes() const { return host_bytes_ + (keeps_own_room() ? workspace_bytes_ : 0); }

 private:
  static constexpr uint64_t own_room_limit = 64 * 1024;

  int32_t add(const ProgramMemory& memory);

  dnnl::engine engine_;
  std::vector<ProgramMemory> memories_;
  std::vector<ProgramStep> steps_;
  uint64_t workspace_bytes_ = 0;
  uint64_t host_bytes_ = 4096;
};

// Launches a program, and its tail. Memory objects cost 150 ns each to make, so a launch takes a set of them from a
// small pool, one per concurrent launch, and only changes addresses.
class OneDnnPrimitive : public ep_primitive {
 public:
  // `nanoseconds`: about how long it takes on one thread. `tail` comes last.
  OneDnnPrimitive(Program program, Tail tail, int64_t nanoseconds);
  ~OneDnnPrimitive() override;
  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override;
  uint64_t workspace(const ep_shape*) const override { return program_.workspace_bytes(); }
  bool has_workspace() const override { return program_.workspace_bytes() != 0; }

 private:
  struct State;
  static constexpr size_t pool_size = 4;

  State* take_state();
  void give_back(State* state);
  ep_status run(State& state, const ep_launch& launch, ep_error** error);

  Program program_;
  Tail tail_;
  int64_t nanoseconds_;
  std::atomic<State*> pool_[pool_size] = {};
};

// Attributes with the scratchpad in the workspace.
dnnl::primitive_attr user_scratchpad();

// The memory descriptor of an operand, f32 only here.
dnnl::memory::desc memory_desc(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);

// oneDNN 2.6 divides by products of dims that it keeps in 32 bits: it crashes on operands of more elements than that.
inline bool is_huge(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    int64_t elements = 1;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] > INT32_MAX || (elements *= operand.dims[axis]) > INT32_MAX) return true;
    }
  }
  return false;
}

// oneDNN's own slow loops: we would rather say no.
inline bool is_reference(const dnnl::primitive_desc_base& desc) { return implementation_of(desc).rfind("ref", 0) == 0; }

}  // namespace tenon::provider::cpu
