// Program: a few oneDNN primitives that run in order on the operands of a launch, with temporaries in its workspace.
// Every primitive of onednn/ is a Program: one computation, with reorders before and after it where oneDNN prefers
// another layout.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/onednn/version.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// The source of a memory object's bytes in a launch.
enum class Place : uint8_t { operand, workspace, scalar };

struct ProgramMemory {
  dnnl::memory::desc desc;
  Place place = Place::operand;
  uint64_t where = 0;  // operand number, offset in the workspace, or scalar slot
};

struct ProgramArgument {
  int32_t name;    // DNNL_ARG_*
  int32_t memory;  // index into the memories of the program
};

struct ProgramStep {
  dnnl::primitive primitive;
  std::vector<ProgramArgument> arguments;
};

// Collects memories and steps. make_primitive<OneDnnPrimitive> takes the finished program.
class Program {
 public:
  explicit Program(const dnnl::engine& engine) : engine_(engine) {}

  int32_t operand(int32_t index, const dnnl::memory::desc& desc) {
    return add({desc, Place::operand, static_cast<uint64_t>(index)});
  }
  // The f32 value of launch scalar `slot`.
  int32_t scalar(uint32_t slot, const dnnl::memory::desc& desc) { return add({desc, Place::scalar, slot}); }
  // A memory in the workspace.
  int32_t temporary(const dnnl::memory::desc& desc);
  // Adds a step of `desc`, with a scratchpad.
  void step(const dnnl::primitive_desc_base& desc, std::vector<ProgramArgument> arguments);
  // Returns `memory` in the layout of `desc`: `memory` itself if the layouts agree, else a temporary that a reorder
  // fills.
  int32_t reordered(int32_t memory, const dnnl::memory::desc& desc);

  const dnnl::memory::desc& desc_of(int32_t memory) const { return memories_[static_cast<size_t>(memory)].desc; }
  const dnnl::engine& engine() const { return engine_; }
  const std::vector<ProgramMemory>& memories() const { return memories_; }
  const std::vector<ProgramStep>& steps() const { return steps_; }
  // The bytes that the steps need besides the operands. A program that needs few bytes keeps them with its memory
  // objects, so small launches need no workspace from the host. oneDNN's own scratchpad is not used, because it binds a
  // primitive to the thread that made it.
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

// The layouts of a constant operand that the host may repack, from `from` to `to`. Empty: the host repacks nothing.
struct Packing {
  dnnl::memory::desc from = {}, to = {};

  bool empty() const { return to.get_size() == 0; }
  void describe(int32_t operand, ep_primitive_info* info) const;
};

// Launches a program and then its tail. A memory object takes 150 ns to create. So each launch takes a State from a
// small pool and only changes the addresses.
// Threads: any number of launches at once.
class OneDnnPrimitive : public ep_primitive {
 public:
  // `nanoseconds` is the estimated time on one thread. `tail` runs last.
  OneDnnPrimitive(Program program, Tail tail, int64_t nanoseconds, Packing packing = {});
  ~OneDnnPrimitive() override;
  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override;
  uint64_t workspace(const ep_shape*) const override { return program_.workspace_bytes(); }
  bool has_workspace() const override { return program_.workspace_bytes() != 0; }
  ep_status pack(char* dst, const char* src, ep_error** error) override;

 private:
  struct State;
  static constexpr size_t pool_size = 4;

  State* take_state();
  void give_back(State* state);
  ep_status run(State& state, const ep_launch& launch, ep_error** error);

  Program program_;
  Tail tail_;
  int64_t nanoseconds_;
  Packing packing_;
  std::atomic<State*> pool_[pool_size] = {};
};

// Returns attributes that put the scratchpad into the workspace.
dnnl::primitive_attr user_scratchpad();

// Returns the type of an operand, which is f32 or bf16.
dnnl::memory::data_type type_of(const ep_operand_desc& operand);

// Returns the layout of an operand in memory. An axis of length 1 or stride 0 gets the stride of a dense tensor.
dnnl::memory::desc layout_of(const ep_operand_desc& operand);

dnnl::memory::desc memory_desc(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides,
                               dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// True if an operand has more elements than 32 bits can count. oneDNN 2.6 divides by products of dims that it computes
// in 32 bits, and crashes on such operands.
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

// True if oneDNN offers only its slow reference loops. The provider then refuses.
inline bool is_reference(const dnnl::primitive_desc_base& desc) { return implementation_of(desc).rfind("ref", 0) == 0; }

}  // namespace tenon::provider::cpu
