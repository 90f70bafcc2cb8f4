#include "core/graph/execute/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/device/device_state.h"
#include "core/graph/execute/packing.h"
#include "core/graph/execute/part_write.h"
#include "core/graph/execute/regions.h"
#include "core/graph/execute/steps.h"
#include "core/graph/fusion.h"
#include "core/interpreter/operands.h"
#include "core/interpreter/segment_launch.h"
#include "core/ops/op_rows.h"
#include "core/plan/memory_plan.h"
#include "core/primitive/compiled_module.h"
#include "core/vm/call_note.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

constexpr uint64_t kAlignment = 64;            // least alignment of values in blocks
constexpr uint64_t kWorkspaceAlignment = 256;  // SegmentLaunch::workspace
constexpr uint32_t kNobody = UINT32_MAX - 1;

class Scheduling {
  using Memory = std::pair<Home::Of, uint32_t>;

 public:
  Scheduling(const Executable& program, Roots roots)
      : program_(program), made_(std::make_shared<Schedule>(std::move(roots))) {
    for (uint32_t i = 0; i < program_.inputs.size(); ++i) inputs_.emplace(program_.inputs[i], i);
  }

  std::shared_ptr<const Schedule> run() {
    find_pieces();
    find_lives();
    find_homes();
    for (const auto& [device, values] : planned_) plan(device, values);
    find_constants();
    for (Piece& piece : made_->pieces) {
      if (launches(program_.steps[piece.first])) build(&piece);
    }
    find_drops();
    find_block_owners();
    find_in_place();
    return std::move(made_);
  }

 private:
  uint32_t root(uint32_t value) const { return made_->roots.root(value); }
  const Home& home(uint32_t value) const { return made_->homes[root(value)]; }
  uint32_t step_count() const { return static_cast<uint32_t>(program_.steps.size()); }
  static DeviceState* device_of(const Step& step) {
    return step.fused != nullptr ? step.fused->device : step.prepared->device;
  }

  // Views launch nothing, so they interrupt no segment.
  void find_pieces() {
    for (uint32_t i = 0; i < step_count(); ++i) {
      const Step& step = program_.steps[i];
      if (is_view(step)) continue;
      if (launches(step) && !made_->pieces.empty()) {
        Piece& last = made_->pieces.back();
        const Step& first = program_.steps[last.first];
        if (launches(first) && device_of(first) == device_of(step)) {
          last.count = i - last.first + 1;
          continue;
        }
      }
      made_->pieces.emplace_back().first = i;
    }
  }

  void find_lives() {
    last_use_.assign(program_.values.size(), 0);
    makers_.assign(program_.values.size(), kNobody);
    kept_.assign(program_.values.size(), false);
    for (uint32_t id : program_.outputs) kept_[root(id)] = true;
    for (uint32_t i = 0; i < step_count(); ++i) {
      if (is_view(program_.steps[i])) continue;
      for (uint32_t id : program_.steps[i].inputs) last_use_[root(id)] = i;
      for (uint32_t id : program_.steps[i].outputs) {
        last_use_[root(id)] = std::max(last_use_[root(id)], i);
        makers_[id] = i;
      }
      // `to` returns its input itself if that is already on the device.
      if (program_.steps[i].op == &op_row(OpId::to)) kept_[root(program_.steps[i].inputs[0])] = true;
    }
  }

  void find_homes() {
    made_->homes.assign(program_.values.size(), {});
    for (uint32_t id = 1; id < program_.values.size(); ++id) {
      if (program_.values[id].constant.defined()) made_->homes[id].of = Home::Of::constant;
    }
    for (uint32_t id : program_.inputs) made_->homes[id] = {Home::Of::tensor, made_->tensors++, 0};
    made_->input_alignments.assign(program_.inputs.size(), 1);
    made_->in_place.assign(program_.outputs.size(), kNoInput);
    for (uint32_t i = 0; i < program_.outputs.size(); ++i) place_over_input(i);
    for (const Piece& piece : made_->pieces) {
      const Step& step = program_.steps[piece.first];
      if (launches(step)) continue;
      for (uint32_t id : step.outputs) made_->homes[id] = {Home::Of::tensor, made_->tensors++, 0};
    }
    for (uint32_t i = 0; i < program_.outputs.size(); ++i) {
      Home& result = made_->homes[root(program_.outputs[i])];
      if (result.of == Home::Of::nothing) result = {Home::Of::output, i, 0};
    }
    for (uint32_t i = 0; i < step_count(); ++i) {
      const Step& step = program_.steps[i];
      if (launches(step)) find_planned(step, i);
    }
  }

  // Places result `i`, and the values it is computed from, into the memory of the input whose later state it is, if
  // each step in between may overwrite what it reads.
  void place_over_input(uint32_t i) {
    if (program_.over[i] == kNoInput) return;
    const uint32_t input = program_.inputs[program_.over[i]];
    const DeviceState* device = program_.values[input].device;
    if (device->layouts || device->exclusive) return;
    std::vector<uint32_t> made;
    for (uint32_t at = root(program_.outputs[i]); at != input;) {
      const uint32_t from = makers_[at] == kNobody ? 0 : overwritten_for_state(makers_[at], at, input);
      if (from == 0) return;
      made.push_back(at);
      at = from;
    }
    if (made.empty()) return;
    for (uint32_t id : made) made_->homes[id] = made_->homes[input];
    made_->in_place[i] = program_.over[i];
  }

  struct Planned {
    uint32_t root = 0;  // 0: workspace of the step
    uint32_t step = 0;
    plan::Value value;
  };

  void find_planned(const Step& step, uint32_t at) {
    std::vector<Planned>& values = planned_[device_of(step)];
    group_of_.resize(program_.values.size(), plan::kNone);
    for (uint32_t id : step.outputs) {
      if (made_->homes[id].of != Home::Of::nothing) continue;
      const TensorMeta& meta = program_.values[id].meta;
      const auto bytes = static_cast<uint64_t>(dtype_bytes(meta.dtype, element_count(meta.dims)));
      if (const uint32_t over = written_over(step, at, id); over != 0) {
        if (group_of_[over] == plan::kNone) group_of_[over] = groups_++;
        group_of_[id] = group_of_[over];
      }
      values.push_back({id, at, {bytes, kAlignment, at, last_use_[id], plan::kNone}});
      made_->homes[id].of = Home::Of::block;
    }
    if (step.part != nullptr || step.fused != nullptr)
      return;  // parts and fused kernels need no alignments and no workspace
    for (const PreparedOperand& operand : step.prepared->operands) note_alignment(step, operand);
    if (step.prepared->workspace_bytes != 0) {
      values.push_back({0, at, {step.prepared->workspace_bytes, kWorkspaceAlignment, at, at, plan::kNone}});
    }
  }

  // Like overwritten(), for a value in a block.
  uint32_t written_over(const Step& step, uint32_t at, uint32_t id) const {
    const uint32_t from = overwritten(step, at, id);
    return from != 0 && made_->homes[from].of == Home::Of::block ? from : 0;
  }

  // The value that step number `at` may overwrite with its result `id`: the input that its kind allows, element by
  // element, or the input that it writes a part of. No later step may read it. 0: none.
  uint32_t overwritten(const Step& step, uint32_t at, uint32_t id) const {
    const size_t over = step.part != nullptr ? 0 : step.op != nullptr ? step.op->alias_input : SIZE_MAX;
    if (step.prepared == nullptr || over >= step.inputs.size() || step.outputs.size() != 1) return 0;
    return may_overwrite(step, at, step.inputs[over], id) ? root(step.inputs[over]) : 0;
  }

  // Like overwritten(), on the path to the later state of `input`. A kernel with several results may overwrite only the
  // state itself.
  uint32_t overwritten_for_state(uint32_t at, uint32_t id, uint32_t input) const {
    const Step& step = program_.steps[at];
    if (step.fused == nullptr) return overwritten(step, at, id);
    const auto result = std::find(step.outputs.begin(), step.outputs.end(), id) - step.outputs.begin();
    const uint64_t over = step.fused->over[static_cast<size_t>(result)];
    for (size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
      if ((over >> i & 1) == 0 || root(step.inputs[i]) != input) continue;
      if (may_overwrite(step, at, step.inputs[i], id)) return input;
    }
    return 0;
  }

  // True if step number `at` is the last reader of `input` and result `id` has the same layout.
  bool may_overwrite(const Step& step, uint32_t at, uint32_t input, uint32_t id) const {
    const uint32_t from = root(input);
    if (program_.values[from].constant.defined() || kept_[from] || last_use_[from] != at) return false;
    if (!alone(step, from) || !same_elements(input, id)) return false;
    const TensorMeta &whole = program_.values[from].meta, &result = program_.values[id].meta;
    return made_->roots[input].offset == 0 && element_count(whole.dims) == element_count(result.dims);
  }

  void note_alignment(const Step& step, const PreparedOperand& operand) {
    if (operand.alignment <= 1) return;
    const bool reads = operand.input >= 0;
    if (!reads && operand.output < 0) return;
    const uint32_t id =
        reads ? step.inputs[static_cast<size_t>(operand.input)] : step.outputs[static_cast<size_t>(operand.output)];
    int32_t& alignment = alignments_[root(id)];
    alignment = std::max(alignment, operand.alignment);
    const auto [first, last] = inputs_.equal_range(root(id));
    for (auto input = first; input != last; ++input) made_->input_alignments[input->second] = alignment;
  }

  void plan(DeviceState* device, const std::vector<Planned>& planned) {
    std::vector<plan::Value> values;
    for (const Planned& one : planned) {
      plan::Value& value = values.emplace_back(one.value);
      if (one.root == 0) continue;
      value.group = group_of_[one.root];
      if (const auto wanted = alignments_.find(one.root); wanted != alignments_.end()) {
        value.alignment = std::max(value.alignment, static_cast<uint64_t>(wanted->second));
      }
    }
    plan::Pool limits;
    const std::vector<loader::MemoryPool>& pools = device->opened->info.pools;
    if (!pools.empty() && pools[0].largest_allocation != 0) limits.largest_allocation = pools[0].largest_allocation;
    limits.exclusive = device->exclusive;
    const plan::MemoryPlan plan = value_or_throw(plan::plan_memory(values, limits));
    const auto first = static_cast<uint32_t>(made_->blocks.size());
    for (uint64_t bytes : plan.blocks) made_->blocks.push_back({device, bytes});
    for (size_t i = 0; i < planned.size(); ++i) {
      const plan::Location& location = plan.locations[i];
      const Home at{Home::Of::block, first + location.block, location.offset};
      (planned[i].root != 0 ? made_->homes[planned[i].root] : workspaces_[planned[i].step]) = at;
    }
    made_->memory.peak += plan.peak();
    made_->memory.lower_bound += plan.lower_bound;
    note(device, plan);
  }

  // If two threads prepare at once, the noted lower bound may belong to the other plan. Only reports use it.
  static void note(DeviceState* device, const plan::MemoryPlan& plan) {
    uint64_t most = device->planned_peak.load(std::memory_order_relaxed);
    while (plan.peak() > most && !device->planned_peak.compare_exchange_weak(most, plan.peak())) {
    }
    if (plan.peak() > most) device->planned_lower_bound.store(plan.lower_bound, std::memory_order_relaxed);
  }

  // --- constants ---

  struct ConstantAddress {
    uint32_t index = 0;
    uint64_t offset = 0;
  };
  struct DeviceConstants {
    std::vector<StorageOwner> storages;
    std::map<Storage*, uint32_t> numbers;
    std::shared_ptr<vm::Constants> shared;
  };

  void find_constants() {
    made_->constants = ready_constants(program_);
    for (uint32_t i = 0; i < step_count(); ++i) {
      const Step& step = program_.steps[i];
      if (step.regions != nullptr && step.fused == nullptr) add_constants(*step.regions, &made_->constant_storages);
      for (size_t input = 0; input < step.inputs.size(); ++input) {
        const Tensor& constant = program_.values[step.inputs[input]].constant;
        if (!constant.defined()) continue;
        if (!launches(step)) {
          made_->constant_storages.push_back(constant.impl()->storage.at_hand());
        } else {
          addresses_[{i, input}] = address_of_constant(step, constant, input);
        }
      }
    }
    for (auto& [device, all] : constants_) {
      for (const StorageOwner& owner : all.storages) made_->constant_storages.push_back(owner.get());
      all.shared = std::make_shared<vm::Constants>(std::move(all.storages));
    }
    std::sort(made_->constant_storages.begin(), made_->constant_storages.end());
  }

  ConstantAddress address_of_constant(const Step& step, const Tensor& constant, size_t input) {
    const bool packed = step.fused == nullptr && takes_packed(step, input);
    const Tensor tensor = packed ? Constant::of(constant)->input_of(*step.prepared, input) : constant;
    const TensorImpl& impl = *tensor.impl();
    Storage* storage = value_or_throw(impl.storage.plain(tenon::Use::read));
    DeviceConstants& all = constants_[device_of(step)];
    const auto [at, fresh] = all.numbers.try_emplace(storage, static_cast<uint32_t>(all.storages.size()));
    if (fresh) {
      storage->retain_tensor();
      all.storages.emplace_back(storage);
    }
    return {at->second, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset))};
  }

  // --- segments ---

  // The bindings of one segment, numbered in the order of their first use.
  struct Bindings {
    std::vector<SegmentBinding> all;
    std::map<Memory, uint32_t> numbers = {};

    uint32_t number(const Home& of, bool write) {
      const auto [found, fresh] = numbers.try_emplace({of.of, of.index}, static_cast<uint32_t>(all.size()));
      if (fresh) all.push_back({{of.of, of.index, 0}, false, false});
      all[found->second].write |= write;
      return found->second;
    }
  };

  vm::SegmentAddress address(Bindings* bindings, const Home& of, uint64_t offset, bool write) {
    return vm::SegmentAddress::binding(bindings->number(of, write), of.offset + offset);
  }

  struct Addresses {
    std::vector<vm::SegmentAddress> inputs, outputs;
    vm::SegmentAddress workspace;
  };

  Addresses addresses_of(uint32_t at, Bindings* bindings) {
    const Step& step = program_.steps[at];
    Addresses made;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const uint32_t id = step.inputs[i];
      if (id == 0) {
        made.inputs.emplace_back();
      } else if (program_.values[id].constant.defined()) {
        const ConstantAddress& constant = addresses_.at({at, i});
        made.inputs.push_back(vm::SegmentAddress::constant(constant.index, constant.offset));
      } else {
        const auto offset = static_cast<uint64_t>(dtype_bytes(program_.values[id].meta.dtype, made_->roots[id].offset));
        made.inputs.push_back(address(bindings, home(id), offset, false));
      }
    }
    for (uint32_t id : step.outputs) made.outputs.push_back(address(bindings, home(id), 0, true));
    if (const auto found = workspaces_.find(at); found != workspaces_.end()) {
      made.workspace = address(bindings, found->second, 0, true);
    }
    return made;
  }

  void build(Piece* piece) {
    Bindings bindings;
    std::map<uint32_t, Addresses> all;
    for (uint32_t i = piece->first; i < piece->first + piece->count; ++i) {
      if (launches(program_.steps[i])) all.emplace(i, addresses_of(i, &bindings));
    }
    DeviceState* device = device_of(program_.steps[piece->first]);
    const auto constants = constants_.find(device);
    vm::SegmentBuilder builder(device, static_cast<uint32_t>(bindings.all.size()),
                               constants != constants_.end() ? constants->second.shared : nullptr);
    for (const auto& [i, addresses] : all) {
      const Step& step = program_.steps[i];
      if (step.fused != nullptr) {
        add_fused(&builder, step, addresses);
      } else if (step.part != nullptr) {
        add_part_write(&builder, step, addresses);
      } else {
        add(&builder, step, {addresses.inputs, addresses.outputs, addresses.workspace});
      }
    }
    piece->segment = builder.finish();
    for (SegmentBinding& binding : bindings.all) {
      binding.whole = binding.write && first_use(binding.home) && binding.home.of != Home::Of::tensor;
    }
    piece->bindings = std::move(bindings.all);
    note_executions(piece);
    if (vm::records_lists(device)) piece->replay = std::make_shared<Replay>(device);
  }

  void add(vm::SegmentBuilder* builder, const Step& step, const CallAddresses& addresses) {
    const StepCall call(program_, step);
    throw_if_error(add_launch(builder, call.call(), *step.prepared, addresses, (*program_.labels)[step.label]));
  }

  void add_fused(vm::SegmentBuilder* builder, const Step& step, const Addresses& addresses) {
    std::vector<vm::SegmentAddress> buffers = addresses.inputs;
    buffers.insert(buffers.end(), addresses.outputs.begin(), addresses.outputs.end());
    const FusedLaunch& fused = *step.fused;
    const NodeName name{step.op->named, vm::kNoInputs, {}, (*program_.labels)[step.label]};
    vm::SegmentKernelLaunch launch;
    launch.module = fused.module;
    launch.kernel = fused.kernel;
    launch.buffers = buffers;
    launch.parameters = fused.parameters;
    launch.groups = fused.groups;
    launch.name = &name;
    throw_if_error(builder->add(launch));
  }

  void add_part_write(vm::SegmentBuilder* builder, const Step& step, const Addresses& addresses) {
    const PartWrite& write = *step.part;
    vm::SegmentAddress part = addresses.outputs[0];
    if (copies_first(step)) add(builder, write.whole, {{&addresses.inputs[0], 1}, {&part, 1}, {}});
    part.offset += write.offset;
    add(builder, write.part, {{&addresses.inputs[1], 1}, {&part, 1}, {}});
  }

  // True if the result of a part write is not in the memory of its input.
  bool copies_first(const Step& step) const {
    if (program_.values[step.inputs[0]].constant.defined()) return true;
    return !(home(step.inputs[0]) == home(step.outputs[0]));
  }

  bool first_use(const Home& memory) { return used_.insert({memory.of, memory.index}).second; }

  void note_executions(Piece* piece) {
    std::vector<ExecutionEntry> entries;
    for (uint32_t i = piece->first; i < piece->first + piece->count; ++i) {
      const Step& step = program_.steps[i];
      if (step.part != nullptr && copies_first(step)) {
        piece->executions.push_back({step.label, entry_of(step.part->whole), work_of(*step.part->whole.prepared)});
      }
      if (step.prepared != nullptr) {
        piece->executions.push_back({step.label, entry_of(step), work_of(*step.prepared)});
      }
      if (step.fused != nullptr) piece->executions.push_back({step.label, fused_entry(step), fused_work(step)});
      for (const ExecutionEntry& entry : step.ends) piece->executions.push_back({step.label, entry, {}});
    }
    for (const StepExecution& execution : piece->executions) entries.push_back(execution.entry);
    piece->counts = std::make_shared<LaunchCounts>(std::move(entries));
  }

  ExecutionEntry fused_entry(const Step& step) const {
    const FusedLaunch& fused = *step.fused;
    return {fmt::format("fused ({})", fused.ops),
            fused.device->opened->spelling,
            fused.module->name,
            Rung::compiled,
            fmt::format("reads and writes {} bytes{}{}", fused_work(step).bytes,
                        fused.bucket.empty() ? "" : ", by the text for " + fused.bucket,
                        fused.tiles.empty() ? "" : ", tuned: " + fused.tiles),
            1,
            0,
            ""};
  }

  // A fused kernel reads each input once and writes each output once.
  Work fused_work(const Step& step) const {
    Work work;
    const auto add = [&](uint32_t id) {
      const TensorMeta& meta = program_.values[id].meta;
      work.bytes += static_cast<uint64_t>(dtype_bytes(meta.dtype, element_count(meta.dims)));
      work.flops = std::max(work.flops, static_cast<uint64_t>(element_count(meta.dims)));
    };
    for (const uint32_t id : step.inputs) add(id);
    for (const uint32_t id : step.outputs) add(id);
    work.flops *= static_cast<uint64_t>(std::count(step.fused->ops.begin(), step.fused->ops.end(), ' ') + 1);
    return work;
  }

  ExecutionEntry entry_of(const Step& step) const {
    const Prepared& prepared = *step.prepared;
    ExecutionEntry entry{std::string(step.op->name),
                         prepared.device->opened->spelling,
                         prepared.primitive->implementation,
                         Rung::native,
                         prepared.reason,
                         1,
                         0,
                         std::string(tier_name(prepared.primitive->tier))};
    if (step.dense_copy) {
      const TensorMeta& meta = program_.values[step.outputs[0]].meta;
      entry.op = kDenseCopy;
      entry.bytes_copied = static_cast<uint64_t>(dtype_bytes(meta.dtype, element_count(meta.dims)));
    }
    if (!step.alone.empty()) entry.reason += (entry.reason.empty() ? "alone: " : "; alone: ") + step.alone;
    return entry;
  }

  // --- tensors ---

  void find_drops() {
    std::vector<uint32_t> last(made_->tensors, UINT32_MAX);  // by tensor: the last piece
    for (uint32_t p = 0; p < made_->pieces.size(); ++p) {
      const Piece& piece = made_->pieces[p];
      for (uint32_t i = piece.first; i < piece.first + piece.count; ++i) {
        if (is_view(program_.steps[i])) continue;
        for (uint32_t id : program_.steps[i].inputs) note_use(id, p, &last);
        for (uint32_t id : program_.steps[i].outputs) note_use(id, p, &last);
      }
    }
    for (uint32_t id : program_.outputs) note_use(id, UINT32_MAX, &last);
    for (uint32_t i = 0; i < last.size(); ++i) {
      if (last[i] != UINT32_MAX) made_->pieces[last[i]].drops.push_back(i);
    }
  }

  // A block that steps outside of segments read has no owner.
  void find_block_owners() {
    for (Block& block : made_->blocks) block.piece = kNobody;
    const auto note = [&](const Home& memory, uint32_t piece) {
      if (memory.of != Home::Of::block) return;
      uint32_t& owner = made_->blocks[memory.index].piece;
      owner = owner == kNobody || owner == piece ? piece : kEveryPiece;
    };
    for (uint32_t p = 0; p < made_->pieces.size(); ++p) {
      const Piece& piece = made_->pieces[p];
      for (const SegmentBinding& binding : piece.bindings) note(binding.home, p);
      if (piece.segment != nullptr) continue;
      for (uint32_t id : program_.steps[piece.first].inputs) note(home(id), kEveryPiece);
    }
  }

  // Finds the inputs that each result may overwrite: the step that computes it is the last reader, and its kind allows
  // the alias.
  void find_in_place() {
    made_->written_over.assign(program_.outputs.size(), kNoInput);
    for (uint32_t i = 0; i < step_count(); ++i) {
      const Step& step = program_.steps[i];
      if (step.prepared == nullptr || step.part != nullptr || step.outputs.size() != 1) continue;
      const Home& result = home(step.outputs[0]);
      if (result.of != Home::Of::output || step.op->alias_input >= step.inputs.size()) continue;
      const uint32_t over = step.inputs[step.op->alias_input];
      const auto input = inputs_.lower_bound(over);
      if (input == inputs_.end() || input->first != over || last_use_[over] != i || !alone(step, over)) continue;
      if (!same_elements(over, step.outputs[0]) || last_use_[step.outputs[0]] != i) continue;
      made_->written_over[result.index] = input->second;
    }
  }

  // True if `step` reads `from` exactly once.
  bool alone(const Step& step, uint32_t from) const {
    const auto reads = [&](uint32_t other) { return other != 0 && root(other) == from; };
    return std::count_if(step.inputs.begin(), step.inputs.end(), reads) == 1;
  }

  // True if the elements of two values have the same order in memory, so that one may overwrite the other.
  bool same_elements(uint32_t a, uint32_t b) const {
    const TensorMeta &left = program_.values[a].meta, &right = program_.values[b].meta;
    return left.dtype == right.dtype && left.dims == right.dims && left.strides == right.strides;
  }

  void note_use(uint32_t id, uint32_t piece, std::vector<uint32_t>* last) const {
    if (home(id).of == Home::Of::tensor) (*last)[home(id).index] = piece;
  }

  const Executable& program_;
  std::shared_ptr<Schedule> made_;
  std::multimap<uint32_t, uint32_t> inputs_;  // by value: the indices of the inputs that it is
  std::vector<uint32_t> last_use_;            // by root: the last step that reads or writes it
  std::vector<uint32_t> makers_;              // by root: the step that computes it, or kNobody
  std::vector<bool> kept_;                    // by root: it may be read after its last use
  std::map<DeviceState*, std::vector<Planned>> planned_;
  std::vector<uint32_t> group_of_;  // by root: plan::Value::group
  uint32_t groups_ = 0;
  std::map<uint32_t, int32_t> alignments_;  // by root, if a device needs more than the element's alignment
  std::map<uint32_t, Home> workspaces_;     // indexed by step
  std::map<DeviceState*, DeviceConstants> constants_;
  std::map<std::pair<uint32_t, size_t>, ConstantAddress> addresses_;  // by step and input
  std::set<Memory> used_;                                             // bound by an earlier segment
};

}  // namespace

std::shared_ptr<const Schedule> make_schedule(const Executable& program, Roots roots) {
  return Scheduling(program, std::move(roots)).run();
}

PlannedMemory planned_memory(const Executable& executable) {
  return executable.schedule != nullptr ? executable.schedule->memory : PlannedMemory();
}

}  // namespace tenon::graph
