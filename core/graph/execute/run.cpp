// run: runs an executable on inputs by its schedule.
#include <algorithm>
#include <array>

#include "core/background/cancellation.h"
#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/graph/execute/check_kernels.h"
#include "core/graph/execute/executable.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/execute/walk.h"
#include "core/interpreter/operands.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/tensor/gradient_state.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

void check_input(const Executable& program, size_t index, const Tensor& given) {
  const Slot& slot = program.values[program.inputs[index]];
  const bool fits = given.defined() && given.dtype() == slot.meta.dtype && given.dims() == slot.meta.dims;
  if (fits && given.impl()->device == slot.device) return;
  const std::string what =
      given.defined() ? fmt::format("{} {} on {}", dtype_name(given.dtype()), given.dims(), given.device().spelling())
                      : "an undefined tensor";
  throw Error(Code::invalid_argument,
              fmt::format("Input {} of the program must be {} {} on {}, but {} was given.", index,
                          dtype_name(slot.meta.dtype), slot.meta.dims, slot.device->opened->spelling, what));
}

constexpr std::string_view kRun = "a run of a program";

// True if an interpreter must see the ops on `input`. The eager interpreter does not record gradients.
bool watched(const Tensor& input, bool remembers) {
  return input.impl()->storage == nullptr || (remembers && input.impl()->gradient != nullptr && input.requires_grad());
}

// One run by the schedule.
class Run {
 public:
  Run(const Executable& program, std::span<const Tensor> bound, std::vector<StepExecution>* executions)
      : program_(program),
        schedule_(*program.schedule),
        executions_(executions),
        tensors_(schedule_.tensors),
        outputs_(program.outputs.size()),
        bound_(bound) {}

  TensorList run(std::span<const Tensor> inputs) {
    std::copy(inputs.begin(), inputs.end(), tensors_.begin());
    take_memory_or_drop();
    for (const Piece& piece : schedule_.pieces) {
      if (piece.segment != nullptr) {
        run_segment(piece);
      } else {
        run_alone(program_.steps[piece.first]);
      }
      for (uint32_t tensor : piece.drops) tensors_[tensor] = Tensor();
    }
    TensorList results(outputs_.size());
    for (size_t i = 0; i < results.size(); ++i) results[i] = result(i);
    return results;
  }

 private:
  // If memory is short, drops command lists, which keep memory.
  void take_memory_or_drop() {
    try {
      take_memory();
    } catch (const Error& error) {
      if (error.code() != Code::out_of_device_memory) throw;
      bool dropped = false;
      lists_.clear();
      blocks_.clear();
      for (const Block& block : schedule_.blocks) dropped = drop_replays(block.device) || dropped;
      if (!dropped) throw;
      take_memory();
    }
  }

  // Allocates all memory of the run before its first launch.
  void take_memory() {
    for (const Piece& piece : schedule_.pieces) {
      if (piece.replay == nullptr) continue;
      lists_.resize(schedule_.pieces.size());
      lists_[number(piece)] = piece.replay->list();
    }
    for (size_t i = 0; i < schedule_.blocks.size(); ++i) {
      const Block& block = schedule_.blocks[i];
      const vm::CommandList* list = block.piece < lists_.size() ? lists_[block.piece].get() : nullptr;
      blocks_.emplace_back(list != nullptr
                               ? list->kept(binding_of(schedule_.pieces[block.piece], i))
                               : StorageOwner(value_or_throw(Storage::make_aligned(block.device, block.bytes))));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t value = program_.outputs[i];
      const Home& home = schedule_.homes[schedule_.roots.root(value)];
      if (home.of != Home::Of::output) continue;
      const Slot& slot = program_.values[value];
      outputs_[i] =
          takes_result(i) ? bound_[i] : value_or_throw(make_tensor(slot.device, slot.meta.dtype, slot.meta.dims));
      overwrites_ = overwrites_ || is_input(*outputs_[i].impl());
    }
  }

  // True if a result is in the memory of an input.
  bool is_input(const TensorImpl& result) const {
    const auto inputs = std::span(tensors_).first(program_.inputs.size());
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Tensor& input) { return input.defined() && input.impl()->storage == result.storage; });
  }

  // True if the step that computes result `i` may write it into the tensor bound to it.
  bool takes_result(size_t i) const {
    if (i >= bound_.size() || !bound_[i].defined()) return false;
    const TensorImpl& bound = *bound_[i].impl();
    const Slot& slot = program_.values[program_.outputs[i]];
    if (bound.device != slot.device || bound.dtype != slot.meta.dtype || !(bound.dims == slot.meta.dims)) return false;
    if (!bound.contiguous || bound.device->layouts || bound.device->exclusive) return false;
    const auto same = [&](const Tensor& other) { return other.defined() && other.impl()->storage == bound.storage; };
    for (size_t input = 0; input < program_.inputs.size(); ++input) {
      if (!same(tensors_[input])) continue;
      if (schedule_.written_over[i] != input || !same_elements(*tensors_[input].impl(), bound)) return false;
    }
    for (size_t other = 0; other < bound_.size(); ++other) {
      if (other != i && same(bound_[other])) return false;
    }
    return !std::binary_search(schedule_.constant_storages.begin(), schedule_.constant_storages.end(),
                               bound.storage.at_hand());
  }

  static size_t binding_of(const Piece& piece, size_t block) {
    const auto found = std::find_if(piece.bindings.begin(), piece.bindings.end(), [&](const SegmentBinding& binding) {
      return binding.home.of == Home::Of::block && binding.home.index == block;
    });
    return static_cast<size_t>(found - piece.bindings.begin());
  }

  vm::Operand operand_of(const SegmentBinding& binding) const {
    const Home& home = binding.home;
    if (home.of == Home::Of::block) return {blocks_[home.index].get(), 0, binding.write, binding.whole};
    const TensorImpl& impl = home.of == Home::Of::output ? *outputs_[home.index].impl() : *tensors_[home.index].impl();
    return {impl.storage, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)), binding.write,
            binding.whole && fills_storage(impl) && !(overwrites_ && is_input(impl))};
  }

  void run_segment(const Piece& piece) {
    constexpr size_t kFew = 16;
    std::array<vm::Operand, kFew> few;
    std::vector<vm::Operand> many(piece.bindings.size() > kFew ? piece.bindings.size() : 0);
    vm::Operand* operands = many.empty() ? few.data() : many.data();
    for (size_t i = 0; i < piece.bindings.size(); ++i) operands[i] = operand_of(piece.bindings[i]);
    launch(piece, {operands, piece.bindings.size()});
    piece.counts->ran();
    if (executions_ != nullptr) {
      executions_->insert(executions_->end(), piece.executions.begin(), piece.executions.end());
    }
    if (process::attention.load(std::memory_order_relaxed) & process::kReport) [[unlikely]] {
      for (const StepExecution& execution : piece.executions) note_execution(execution.entry);
    }
  }

  void launch(const Piece& piece, std::span<const vm::Operand> operands) {
    const uint16_t stream = vm::current_stream(piece.segment->device());
    // The bindings of a list must not overlap.
    if (piece.replay == nullptr || overwrites_) [[likely]]
      return throw_if_error(vm::run({piece.segment.get(), operands, stream}));
    vm::CommandList* list = lists_[number(piece)].get();
    if (list != nullptr) return throw_if_error(list->run(operands, stream));
    throw_if_error(vm::run({piece.segment.get(), operands, stream}));
    std::vector<uint64_t> moving;
    for (const SegmentBinding& binding : piece.bindings) moving.push_back(moving_bytes(binding, piece));
    piece.replay->ran(piece.segment, operands, moving);
  }

  size_t number(const Piece& piece) const { return static_cast<size_t>(&piece - schedule_.pieces.data()); }

  // The number of bytes of a binding that each replay sets again.
  uint64_t moving_bytes(const SegmentBinding& binding, const Piece& piece) const {
    const Home& home = binding.home;
    if (home.of == Home::Of::block) {
      const Block& block = schedule_.blocks[home.index];
      return block.piece == number(piece) ? 0 : block.bytes;
    }
    const Tensor& tensor = home.of == Home::Of::output ? outputs_[home.index] : tensors_[home.index];
    return static_cast<uint64_t>(tensor.bytes());
  }

  void run_alone(const Step& step) {
    if (CancellationScope::cancelled_here()) {
      throw Error(with_label(Status(Code::cancelled, "The program cancelled this run."), (*program_.labels)[step.label],
                             program_.values[step.outputs[0]].device->opened->spelling));
    }
    TensorList inputs(step.inputs.size());
    std::vector<const Tensor*> pointers(step.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (step.inputs[i] == 0) continue;
      inputs[i] = tensor_of(step.inputs[i]);
      pointers[i] = &inputs[i];
    }
    TensorList results = StepRunner(program_, eager_interpreter(), executions_).run(step, pointers);
    for (size_t i = 0; i < results.size(); ++i) {
      tensors_[schedule_.homes[step.outputs[i]].index] = std::move(results[i]);
    }
  }

  // A tensor for `value`, wherever it is.
  Tensor tensor_of(uint32_t value) {
    const Slot& slot = program_.values[value];
    if (slot.constant.defined()) return slot.constant;
    const RootView& view = schedule_.roots[value];
    const Home& home = schedule_.homes[view.root];
    if (home.of == Home::Of::block) return in_block(slot, home, view.offset);
    const Tensor& base = home.of == Home::Of::output ? outputs_[home.index] : tensors_[home.index];
    // otherwise a view, or state with other dims in its memory
    const bool itself = view.root == value && home.of == Home::Of::tensor;
    if (itself && base.dims() == slot.meta.dims) return base;
    return make_view(base, slot.meta.dtype, slot.meta.dims, slot.meta.strides, base.impl()->offset + view.offset);
  }

  Tensor in_block(const Slot& slot, const Home& home, int64_t offset) {
    Tensor tensor = make_meta(slot.device, slot.meta);
    StorageOwner owner = blocks_[home.index];
    tensor.impl()->storage = SharedStorage(owner.release());
    tensor.impl()->offset = static_cast<int64_t>(home.offset) * 8 / dtype_info(slot.meta.dtype).bits + offset;
    return tensor;
  }

  Tensor result(size_t i) {
    if (schedule_.in_place[i] != kNoInput) {
      bound_[i].impl()->storage.note_write(kRun);
      return bound_[i];
    }
    Tensor made = outputs_[i].defined() ? outputs_[i] : tensor_of(program_.outputs[i]);
    if (i >= bound_.size() || !bound_[i].defined()) return made;
    if (made.impl() != bound_[i].impl()) {
      Tensor target = bound_[i];
      copy_(target, made);
      return target;
    }
    made.impl()->storage.note_write(kRun);
    return made;
  }

  const Executable& program_;
  const Schedule& schedule_;
  std::vector<StepExecution>* executions_;
  std::vector<Tensor> tensors_;
  std::vector<StorageOwner> blocks_;
  std::vector<std::shared_ptr<vm::CommandList>> lists_;  // by piece; empty if no device records lists
  TensorList outputs_;                                   // results that a segment writes
  bool overwrites_ = false;                              // some of them are in the memory of an input
  std::span<const Tensor> bound_;
};

// True if results may be computed in the memory of inputs: their tensors are bound to these results, and no other
// tensor of the run shares memory with them.
bool may_write_inputs(const Executable& program, std::span<const Tensor> inputs, std::span<const Tensor> bound) {
  const Schedule& schedule = *program.schedule;
  for (size_t i = 0; i < schedule.in_place.size(); ++i) {
    const uint32_t over = schedule.in_place[i];
    if (over == kNoInput) continue;
    if (i >= bound.size() || !bound[i].defined()) return false;
    const TensorImpl &target = *bound[i].impl(), &input = *inputs[over].impl();
    if (!(target.storage == input.storage) || !same_elements(input, target)) return false;
    const auto shares = [&](const Tensor& other) { return other.defined() && other.impl()->storage == target.storage; };
    if (std::count_if(inputs.begin(), inputs.end(), shares) != 1) return false;
    if (std::count_if(bound.begin(), bound.end(), shares) != 1) return false;
    if (std::binary_search(schedule.constant_storages.begin(), schedule.constant_storages.end(),
                           target.storage.at_hand()))
      return false;
  }
  return true;
}

// Runs under another interpreter, which decides what its results share.
TensorList run_through(const Executable& program, std::span<const Tensor> inputs, std::span<const Tensor> bound,
                       std::vector<StepExecution>* executions) {
  TensorList outputs = walk(program, current_interpreter(), inputs, executions);
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!bound[i].defined()) continue;
    Tensor target = bound[i];
    copy_(target, outputs[i]);
    outputs[i] = target;
  }
  return outputs;
}

bool has_kernels(const Executable& program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return step.fused != nullptr; });
}

// Runs step by step, so that the inputs and results of each kernel are available.
TensorList run_and_check(const Executable& program, std::span<const Tensor> inputs, std::span<const Tensor> bound,
                         std::vector<StepExecution>* executions) {
  const InterpreterScope scope(eager_interpreter());
  TensorList outputs = run_through(program, inputs, bound, executions);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= bound.size() || !bound[i].defined()) outputs[i] = clone(outputs[i]);
  }
  return outputs;
}

}  // namespace

TensorList run_by_schedule(const Executable& program, TensorList inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int32_t alignment = program.schedule->input_alignments[i];
    if (alignment > 1 && misaligned(inputs[i], alignment)) inputs[i] = realigned(inputs[i], alignment);
  }
  return Run(program, {}, nullptr).run(inputs);
}

TensorList run(const Executable& program, std::span<const Tensor> inputs, std::span<const Tensor> bound,
               std::vector<StepExecution>* executions) {
  if (inputs.size() != program.inputs.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The program has {} inputs, but {} were given.", program.inputs.size(), inputs.size()));
  }
  TensorList given(inputs.begin(), inputs.end());
  const bool remembers = &current_interpreter() != &eager_interpreter();
  bool seen = program.schedule == nullptr;
  for (size_t i = 0; i < given.size(); ++i) {
    check_input(program, i, given[i]);
    if (!given[i].contiguous()) given[i] = contiguous(given[i]);
    seen = seen || watched(given[i], remembers);
  }
  if (seen) return run_through(program, given, bound, executions);
  if (checks_kernels() && has_kernels(program)) return run_and_check(program, given, bound, executions);
  for (size_t i = 0; i < given.size(); ++i) {
    const int32_t alignment = program.schedule->input_alignments[i];
    if (alignment > 1 && misaligned(given[i], alignment)) given[i] = realigned(given[i], alignment);
  }
  if (!may_write_inputs(program, given, bound)) return run_through(program, given, bound, executions);
  return Run(program, bound, executions).run(given);
}

}  // namespace tenon::graph
