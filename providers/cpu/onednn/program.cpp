#include "providers/cpu/onednn/program.h"

#include <memory>

#include "providers/cpu/threads/lease.h"
#include "providers/cpu/threads/stop.h"

namespace tenon::provider::cpu {
namespace {

// Estimated code and tables of one generated kernel, from the growth of a process over hundreds of primitives.
constexpr uint64_t bytes_of_step = 160 * 1024;

}  // namespace

int32_t Program::add(const ProgramMemory& memory) {
  memories_.push_back(memory);
  return static_cast<int32_t>(memories_.size()) - 1;
}

int32_t Program::temporary(const dnnl::memory::desc& desc) {
  const uint64_t offset = workspace_bytes_;
  workspace_bytes_ += (desc.get_size() + 255) / 256 * 256;
  return add({desc, Place::workspace, offset});
}

void Program::step(const dnnl::primitive_desc_base& desc, std::vector<ProgramArgument> arguments) {
  const dnnl::memory::desc scratchpad = desc.scratchpad_desc();
  if (scratchpad.get_size() != 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, temporary(scratchpad)});
  ProgramStep step;
  step.primitive = dnnl::primitive(desc.get());
  step.arguments = std::move(arguments);
  steps_.push_back(std::move(step));
  host_bytes_ += bytes_of_step;
}

int32_t Program::reordered(int32_t memory, const dnnl::memory::desc& desc) {
  if (desc_of(memory) == desc) return memory;
  const dnnl::memory::desc from = desc_of(memory);
  const int32_t to = temporary(desc);
  step(make_reorder(engine_, from, desc), {{DNNL_ARG_FROM, memory}, {DNNL_ARG_TO, to}});
  return to;
}

// The oneDNN objects of one launch. Concurrent launches use different States.
struct OneDnnPrimitive::State {
  explicit State(const Program& program) : stream(program.engine()) {
    if (program.keeps_own_room()) room.resize(program.room_bytes() / sizeof(Line));
    for (const ProgramMemory& memory : program.memories()) {
      memories.emplace_back(memory.desc, program.engine(), nullptr);
      addresses.push_back(nullptr);
    }
    for (const ProgramStep& step : program.steps()) {
      arguments.emplace_back();
      for (const ProgramArgument& argument : step.arguments) {
        arguments.back().push_back({argument.name, memories[static_cast<size_t>(argument.memory)].get()});
      }
    }
  }

  struct alignas(256) Line {
    char bytes[256];
  };

  dnnl::stream stream;
  std::vector<Line> room;  // the temporaries, if the program keeps its own
  std::vector<dnnl::memory> memories;
  std::vector<void*> addresses;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments;
  float scalars[EP_MAX_SCALARS] = {};
};

OneDnnPrimitive::OneDnnPrimitive(Program program, Tail tail, int64_t nanoseconds, Packing packing)
    : program_(std::move(program)), tail_(std::move(tail)), nanoseconds_(nanoseconds), packing_(std::move(packing)) {}

OneDnnPrimitive::~OneDnnPrimitive() {
  for (std::atomic<State*>& place : pool_) delete place.load();
}

// Packed layouts get equal ids if they are equal.
void Packing::describe(int32_t operand, ep_primitive_info* info) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&to.data);
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < sizeof to.data; ++i) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  info->pack_operand = 1 + static_cast<uint32_t>(operand);
  info->pack_bytes = to.get_size();
  info->pack_layout = hash;
}

ep_status OneDnnPrimitive::pack(char* dst, const char* src, ep_error** error) {
  if (packing_.empty()) return ep_primitive::pack(dst, src, error);
  dnnl::stream stream(program_.engine());
  dnnl::memory from(packing_.from, program_.engine(), const_cast<char*>(src)), to(packing_.to, program_.engine(), dst);
  dnnl::reorder(from, to).execute(stream, from, to);
  return EP_STATUS_OK;
}

OneDnnPrimitive::State* OneDnnPrimitive::take_state() {
  for (std::atomic<State*>& place : pool_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    if (State* state = place.exchange(nullptr, std::memory_order_acquire)) return state;
  }
  return new State(program_);
}

void OneDnnPrimitive::give_back(State* state) {
  for (std::atomic<State*>& place : pool_) {
    State* empty = nullptr;
    if (place.compare_exchange_strong(empty, state, std::memory_order_release)) return;
  }
  delete state;
}

ep_status OneDnnPrimitive::run(State& state, const ep_launch& launch, ep_error** error) {
  const std::vector<ProgramMemory>& memories = program_.memories();
  for (size_t i = 0; i < memories.size(); ++i) {
    const ProgramMemory& memory = memories[i];
    void* address = nullptr;
    switch (memory.place) {
      case Place::operand: address = address_of(launch.operands[memory.where]); break;
      case Place::workspace:
        address = program_.keeps_own_room() ? reinterpret_cast<char*>(state.room.data()) + memory.where
                                            : address_of(launch.workspace) + memory.where;
        break;
      case Place::scalar:
        state.scalars[memory.where] = static_cast<float>(launch.scalars[memory.where].value.f64);
        address = &state.scalars[memory.where];
        break;
    }
    if (state.addresses[i] == address) continue;
    if (!set_address(state.memories[i], address)) {
      return fail_text(host, error, EP_STATUS_INTERNAL, "oneDNN refused the address of an operand.");
    }
    state.addresses[i] = address;
  }
  const WideLease lease(device->threads, nanoseconds_);
  const OpenMpWidth width(lease.width());
  for (size_t i = 0; i < program_.steps().size(); ++i) {
    const std::vector<dnnl_exec_arg_t>& arguments = state.arguments[i];
    const dnnl_status_t status = dnnl_primitive_execute(program_.steps()[i].primitive.get(), state.stream.get(),
                                                        static_cast<int>(arguments.size()), arguments.data());
    if (status == dnnl_success) continue;
    return fail(host, error, status == dnnl_out_of_memory ? EP_STATUS_OUT_OF_HOST_MEMORY : EP_STATUS_INTERNAL,
                "oneDNN failed to run step %zu of a primitive (its status %d).", i, static_cast<int>(status));
  }
  if (!tail_.empty()) tail_.run(launch, lease.width());
  return EP_STATUS_OK;
}

ep_status OneDnnPrimitive::launch(const ep_launch& launch, ep_fault*, ep_error** error) {
  if (program_.workspace_bytes() != 0 && launch.workspace.memory == nullptr) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT,
                "The launch has no workspace; this primitive needs %llu bytes.",
                static_cast<unsigned long long>(program_.workspace_bytes()));
  }
  const auto give = [this](State* state) { give_back(state); };
  const std::unique_ptr<State, decltype(give)> state(take_state(), give);
  return run(*state, launch, error);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory::data_type type_of(const ep_operand_desc& operand) {
  return operand.dtype == EP_DTYPE_bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc layout_of(const ep_operand_desc& operand) {
  dnnl::memory::dims dims;
  dnnl::memory::dims strides;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    dims.push_back(operand.strides[axis] == 0 ? 1 : operand.dims[axis]);
    strides.push_back(operand.strides[axis]);
  }
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) strides[axis] = axis + 1 < dims.size() ? dims[axis + 1] * strides[axis + 1] : 1;
  }
  return memory_desc(dims, strides, type_of(operand));
}

dnnl::memory::desc memory_desc(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides,
                               dnnl::memory::data_type type) {
  return dnnl::memory::desc(dims, type, strides);
}

}  // namespace tenon::provider::cpu
