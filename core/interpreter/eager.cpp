// The eager interpreter: computes each op when it is called. Cheapest first: an element-wise op whose layout class was
// seen before (layout_class.h), a view, a signature that was prepared before, and then everything else.
#include "core/interpreter/eager.h"

#include <memory>
#include <string>
#include <vector>

#include "core/device/process.h"
#include "core/interpreter/call_key.h"
#include "core/interpreter/host_loops/host_loops.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/launch.h"
#include "core/interpreter/layout_class.h"
#include "core/interpreter/prepared_index.h"
#include "core/interpreter/tables.h"
#include "core/ops/attributes.h"
#include "core/ops/composite.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

void note(const Prepared& prepared, uint64_t bytes_copied) {
  note_execution({std::string(prepared.op->name), prepared.device->opened->spelling,
                  prepared.primitive ? prepared.primitive->implementation : "", prepared.rung, prepared.reason, 1,
                  bytes_copied, prepared.primitive ? std::string(tier_name(prepared.primitive->tier)) : ""});
}

void check_data(const OpCall& call) {
  const auto refuse = [&](const char* role, size_t index, const Tensor& tensor) {
    throw Error(Subject{call.op->name}, Code::invalid_argument,
                fmt::format("{} {} of shape {} has no data: it is {}, and cannot be used under {}.", role, index,
                            tensor.dims(), origin_of(tensor), eager_interpreter().name()));
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor* input = call.inputs[i];
    if (input != nullptr && input->impl()->storage == nullptr) refuse("argument", i, *input);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& output = call.outputs[i];
    if (output.defined() && output.impl()->storage == nullptr) refuse("output", i, output);
  }
}

void run_builtin(const OpCall& call) {
  TensorMeta one;
  std::vector<TensorMeta> several;
  throw_if_error(call.outputs.size() == 1 ? infer_outputs(call, &one) : infer_outputs(call, &several));
  call.op->run(call);
}

bool viewable(const OpCall& call) {
  return call.inputs[0]->impl()->storage != nullptr &&
         !(process::attention.load(std::memory_order_relaxed) & process::kForked);
}

void run_view(const OpCall& call) {
  Tensor view = begin_view(*call.inputs[0]->impl());
  throw_if_error(call.op->view(call, view.impl()));
  call.outputs[0] = std::move(view);
}

// The Prepared for the signature `key`: from another thread, or made now.
std::shared_ptr<const Prepared> meet(const OpCall& call, DeviceState* device, uint64_t hash, const CallKey& key) {
  std::shared_ptr<const Prepared> prepared = find_prepared(hash, key.data(), key.size());
  if (prepared == nullptr) {
    std::unique_ptr<Prepared> made = value_or_throw(prepare(call, device, Reach::setting));
    made->key.assign(key.data(), key.data() + key.size());
    prepared = made->reusable ? share_prepared(hash, std::move(made)) : std::move(made);
  }
  if (call.op->form == OpForm::elementwise) learn_class(call, *prepared);
  return prepared;
}

// False: the shapes are too large for the primitive, and nothing happened.
template <size_t kRoom>
bool run_and_count(OwnedInputs<kRoom>* owned, const Prepared& prepared, Counters* counters) {
  const Ran ran = run_prepared(owned, prepared);
  if (ran.beyond) [[unlikely]]
    return false;
  const uint64_t copied = ran.bytes_moved + owned->copied_bytes;
  Counters::add(counters->launches, 1);
  Counters::add(counters->bytes_copied, copied);
  if (process::attention.load(std::memory_order_relaxed) & process::kReport) note(prepared, copied);
  return true;
}

// Runs a signature whose launch may call other ops. Its table entry may move or be dropped meanwhile.
template <size_t kRoom>
bool run_nested(OwnedInputs<kRoom>* owned, std::shared_ptr<const Prepared> prepared, uint64_t hash) {
  Counters counters;
  if (!run_and_count(owned, *prepared, &counters)) return false;
  Tables& all = tables();
  PreparedEntry* entry = all.find(hash, prepared->key.data(), prepared->key.size());
  if (entry == nullptr && prepared->reusable) entry = all.insert(hash, prepared);
  if (entry == nullptr) return true;
  Counters::add(entry->counters.launches, counters.launches);
  Counters::add(entry->counters.bytes_copied, counters.bytes_copied);
  return true;
}

// Prepares a signature again and runs the call: with numbers, if the shapes are too large for the primitive with open
// dims; or because kernels are now ready. Keeps the new choice.
template <size_t kRoom>
[[gnu::cold]] void run_anew(OwnedInputs<kRoom>* owned, DeviceState* device, uint64_t hash, const CallKey& key) {
  for (bool done = false; !done;) {
    std::shared_ptr<const Prepared> prepared = find_prepared(hash, key.data(), key.size());
    if (prepared == nullptr || prepared->rung == Rung::native || prepared->outdated()) {
      const bool arrived = prepared != nullptr && prepared->outdated();
      std::unique_ptr<Prepared> made =
          value_or_throw(prepare(owned->call, device, Reach::setting, arrived ? Sizes::open : Sizes::numbers));
      made->key.assign(key.data(), key.data() + key.size());
      const std::string_view why = "a launch with open sizes was refused";
      if (!arrived) made->reason = made->reason.empty() ? std::string(why) : fmt::format("{}; {}", why, made->reason);
      prepared = made->reusable ? share_instead(hash, std::move(made)) : std::move(made);
    }
    tables().drop(hash, key.data(), key.size());
    done = run_nested(owned, prepared, hash);
  }
}

// Runs a call of this signature; `entry` is its entry in the thread's table, or null.
template <size_t kRoom>
void run_found(OwnedInputs<kRoom>* owned, DeviceState* device, const CallKey& key, uint64_t hash,
               PreparedEntry* entry) {
  bool done = true;
  if (entry == nullptr) [[unlikely]] {
    done = run_nested(owned, meet(owned->call, device, hash, key), hash);
  } else if (entry->prepared->nested()) {
    done = run_nested(owned, entry->prepared, hash);
  } else {
    done = run_and_count(owned, *entry->prepared, &entry->counters);
  }
  if (!done) [[unlikely]]
    run_anew(owned, device, hash, key);
}

template <size_t kRoom>
void run_separated(const OpCall& call, DeviceState* device) {
  OwnedInputs<kRoom> owned(call);
  separate_overlaps(&owned);
  const CallKey key(owned.call, device);
  const uint64_t hash = hash_of(key.data(), key.size());
  run_found(&owned, device, key, hash, tables().find(hash, key.data(), key.size()));
}

// Runs a call whose inputs need not move to another device.
template <size_t kRoom>
void run_in_place(const OpCall& call, DeviceState* device) {
  const CallKey key(call, device);
  const uint64_t hash = hash_of(key.data(), key.size());
  PreparedEntry* entry = tables().find(hash, key.data(), key.size());
  if (entry != nullptr && entry->prepared->at_once && run_at_once<kRoom>(call, *entry->prepared)) [[likely]] {
    return Counters::add(entry->counters.launches, 1);
  }
  OwnedInputs<kRoom> owned(call);
  run_found(&owned, device, key, hash, entry);
}

template <size_t kRoom>
void run_in(const OpCall& call, DeviceState* device) {
  uint32_t given = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) given |= uint32_t{call.outputs[i].defined()} << i;
  given != 0 && has_overlaps(call) ? run_separated<kRoom>(call, device) : run_in_place<kRoom>(call, device);
  for (size_t i = 0; given != 0 && i < call.outputs.size(); ++i) {
    if (given >> i & 1) call.outputs[i].impl()->storage.note_write(call.op->name);
  }
}

void run(const OpCall& call);

// Runs a composite by its host loop, or else by the ops that it is written in.
void run_composite(const OpCall& call) {
  const bool elsewhere = values_elsewhere.load(std::memory_order_relaxed) && value_elsewhere(call) != nullptr;
  const HostLoop loop = elsewhere ? nullptr : host_loop(*call.op);
  if (loop != nullptr && loop(call)) return;
  composite::called(call.op->named, [&] { compose(call, eager_interpreter()); });
}

// Runs an element-wise call whose tensors are on several devices, if all tensors outside the first non-scalar device
// are numbers on the host (rank 0): these are moved. Else throws `why_not`.
[[gnu::cold]] void run_with_moved_numbers(const OpCall& call, const Status& why_not) {
  const auto is_number = [](const Tensor* tensor) {
    return tensor->impl()->dims.rank() == 0 && tensor->impl()->device == Device::host().state();
  };
  DeviceState* device = nullptr;
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && input->defined() && !is_number(input)) device = input->impl()->device;
  }
  std::vector<Tensor> moved(call.inputs.size());
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  bool any = false;
  for (size_t i = 0; call.op->form == OpForm::elementwise && device != nullptr && i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !inputs[i]->defined() || !is_number(inputs[i])) continue;
    moved[i] = tenon::to(*inputs[i], Device(device));
    inputs[i] = &moved[i];
    any = true;
  }
  if (!any) throw_if_error(why_not);
  OpCall on_device = call;
  on_device.inputs = inputs;
  throw_if_error(device_of(on_device).status());
  run(on_device);
}

// The common device of the tensors of `call`, which must all have data; null if they differ or there are none.
DeviceState* common_device(const OpCall& call) {
  DeviceState* device = nullptr;
  const auto agrees = [&device](const TensorImpl& impl) {
    if (device == nullptr) device = impl.device;
    return impl.device == device && impl.storage != nullptr;
  };
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && !agrees(*input->impl())) return nullptr;
  }
  for (const Tensor& output : call.outputs) {
    if (output.defined() && !agrees(*output.impl())) return nullptr;
  }
  return device;
}

[[gnu::always_inline]] inline void run_on(const OpCall& call, DeviceState* device) {
  const size_t tensors = call.inputs.size() + call.outputs.size();
  if (tensors > EP_MAX_OPERANDS) {
    throw Error(Subject{call.op->name}, Code::invalid_argument,
                fmt::format("{} inputs and {} outputs are more than {}.", call.inputs.size(), call.outputs.size(),
                            EP_MAX_OPERANDS));
  }
  tensors <= kFewOperands ? run_in<kFewOperands>(call, device) : run_in<EP_MAX_OPERANDS>(call, device);
}

void run(const OpCall& call) {
  if (process::attention.load(std::memory_order_relaxed) & process::kForked) {
    throw Error(Subject{call.op->name}, Code::internal,
                "this process was forked from one that had opened devices, which it cannot use.",
                "Fork before the first use of Tenon, or start a new program with exec.");
  }
  if (call.op->form == OpForm::composite) return run_composite(call);
  if (values_elsewhere.load(std::memory_order_relaxed)) [[unlikely]] {
    if (const SpreadValue* value = value_elsewhere(call)) return value->interpreter().apply(call);
  }
  const bool launches = call.op->form == OpForm::elementwise || call.op->form == OpForm::kernel;
  if (DeviceState* device = launches ? common_device(call) : nullptr) return run_on(call, device);
  check_data(call);
  if (call.op->form == OpForm::view) return run_view(call);
  if (call.op->form == OpForm::builtin) return run_builtin(call);
  const Result<DeviceState*> found = device_of(call);
  found.ok() ? run_on(call, found.value()) : run_with_moved_numbers(call, found.status());
}

// Has no state of its own: its tables belong to threads.
class EagerInterpreter final : public Interpreter {
 public:
  void apply(const OpCall& call) override {
    if (call.op->form == OpForm::elementwise && apply_by_class(call)) [[likely]]
      return;
    if (call.op->form == OpForm::view && viewable(call)) return run_view(call);
    run(call);
  }
  std::string name() const override { return "the eager interpreter"; }
  // Composites of values that are elsewhere are also passed as records, so that tensors made inside them are made
  // there.
  bool keeps(const OpInfo& op) const override {
    return host_loop(op) != nullptr || values_elsewhere.load(std::memory_order_relaxed);
  }
  bool host_value_known(const Tensor&) override { return true; }
};

}  // namespace

void copy_elements(Tensor& dst, const Tensor& src) {
  CastAttributes attributes{};
  attributes.dtype = dst.dtype();
  const Tensor* inputs[] = {&src};
  OpCall call;
  call.op = &op_row(OpId::cast);
  call.inputs = inputs;
  call.attributes = &attributes;
  call.outputs = {&dst, 1};
  eager_interpreter().apply(call);
}

namespace {
constinit EagerInterpreter interpreter;
}

Interpreter& eager_interpreter() { return interpreter; }

constinit std::atomic<Interpreter*> process_interpreter{&interpreter};

}  // namespace tenon
