#include "core/compile/tracer.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "core/autograd/history.h"
#include "core/global/value.h"
#include "core/graph/regions/eager.h"
#include "core/ops/composite.h"
#include "core/ops/control.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

const void* storage_of(const Tensor& tensor) { return tensor.impl()->storage.at_hand(); }

const SpreadValue* global_of(const OpCall& call) {
  return values_elsewhere.load(std::memory_order_relaxed) ? value_elsewhere(call) : nullptr;
}

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Tracer::Tracer(Device device, const CompileOptions& options, bool gradients, Parts* parts,
               const std::function<bool(const OpInfo&)>& lacks)
    : function_(options.name),
      recorder_(device, {.name = options.name, .lacks = lacks}),
      captures_(recorder_, gradients),
      frozen_(options.frozen),
      parts_(parts),
      global_program_{*this, next_number()} {}

// Like the eager interpreter: composites of global tensors must make the same tensors on every rank.
bool Tracer::keeps(const OpInfo& op) const {
  return values_elsewhere.load(std::memory_order_relaxed) || (!ended() && recorder_.keeps(op));
}

Tensor Tracer::real(const Tensor& tensor) const {
  const bool itself = tensor.impl()->storage != nullptr || global::value_of(tensor) != nullptr;
  return itself ? tensor : ended_->tensor_of(tensor);
}

bool Tracer::is_from_outside(const Tensor& tensor) {
  const global::GlobalValue* value = global::value_of(tensor);
  if (value != nullptr) return value->program != global_program_.number;
  return !is_recorded(tensor) && !was_made(tensor);
}

bool Tracer::is_frozen(const Tensor& tensor) const {
  return std::any_of(frozen_.begin(), frozen_.end(),
                     [&](const Tensor& frozen) { return storage_of(global::held(frozen)) == storage_of(tensor); });
}

Tracer::Made* Tracer::find_made(const Tensor& tensor) {
  const auto found = made_.find(storage_of(tensor));
  return found == made_.end() ? nullptr : &found->second;
}

void Tracer::made(const Tensor& tensor, bool filled) { made_[storage_of(tensor)] = {tensor, filled}; }

Tensor Tracer::value_of(const Tensor& tensor) {
  if (is_recorded(tensor)) return tensor;
  const Made* made = find_made(tensor);
  if (made != nullptr && !captures_.knows(tensor)) captures_.add_made(tensor, made->filled);
  if (made != nullptr) return captures_.find(tensor);
  if (tensor.impl()->gradient != nullptr) check_histories(tensor);
  return captures_.stand_in(tensor);
}

bool Tracer::host_value_known(const Tensor& tensor) {
  if (ended()) return true;
  if (is_recorded(tensor)) return recorder_.host_value_known(tensor);
  return is_frozen(tensor) || (find_made(tensor) != nullptr && !captures_.knows(tensor));
}

void Tracer::refuse_look(std::string_view function, const Tensor& tensor) const {
  const std::string what = is_recorded(tensor) ? origin_of(tensor) : std::string("from outside");
  throw Error(
      Subject{function_}, Code::invalid_argument,
      fmt::format("{} lets the host see the elements of a tensor of shape {}, {}; a recording cannot see "
                  "what the function does with them, and later calls would repeat it.",
                  function, tensor.impl()->dims, what),
      "Decide by tenon::where or tenon::cond, or return the tensor and read it outside. The option whole=False of "
      "compile runs the function in parts.");
}

Tensor Tracer::look(std::string_view function, const Tensor& tensor) {
  if (ended()) return real(tensor);
  if (tensor.impl()->storage != nullptr) {
    if (is_recorded(tensor) || is_frozen(tensor)) return tensor;
    Made* made = find_made(tensor);
    if (made != nullptr && !captures_.knows(tensor)) {
      made->filled = made->filled || function != "copy_to_host";
      return tensor;
    }
  }
  const bool global = global::value_of(tensor) != nullptr || !globals_.empty() || global_program_.token.defined();
  if (parts_ == nullptr || recorder_.in_region() || global) refuse_look(function, tensor);
  end_program();
  return real(tensor);
}

RandomRange Tracer::draw(uint64_t blocks) {
  if (ended()) return default_generator().reserve(blocks);
  if (recorder_.in_region()) {
    throw Error(Subject{function_}, Code::unsupported,
                "random numbers are drawn in a function of cond, while_loop or scan, and a recording "
                "does not know how many of them a run takes.",
                "Draw the numbers beforehand, and read them in the function.");
  }
  next_draw_ = std::exchange(drawn_, drawn_ + blocks);
  return {};
}

void Tracer::end_program() {
  const HostWatchScope nobody(nullptr);
  const RandomRange begin = default_generator().reserve(drawn_);
  auto ended = std::make_unique<Ended>();
  TensorList arguments, outputs;
  std::vector<Tensor> bound;
  for (const Root& root : captures_.roots()) {
    const Tensor tensor = root.of == RootOf::random ? root.draw.numbers(begin) : root.tensor;
    if (root.of != RootOf::made) arguments.push_back(tensor);
    ended->add(base_of(root.recorded), tensor);
    if (!root.written()) continue;
    outputs.push_back(root.recorded);
    bound.push_back(tensor);
  }
  std::vector<std::shared_ptr<graph::Base>> alive;
  std::set<const graph::Base*> met;
  for (const std::weak_ptr<graph::Base>& weak : bases_) {
    std::shared_ptr<graph::Base> base = weak.lock();
    if (base == nullptr || ended->knows(*base) || !met.insert(base.get()).second) continue;
    outputs.push_back(recorder_.whole(base));
    alive.push_back(std::move(base));
  }
  recorder_.keep_sizes();
  const size_t written = bound.size();
  bound.resize(outputs.size());
  const TensorList results = parts_->run(recorder_.finish(outputs), arguments, bound);
  for (size_t i = 0; i < alive.size(); ++i) ended->add(alive[i], results[written + i]);
  ended_ = std::move(ended);
  global_program_.ended = true;
}

void Tracer::note_written(const Tensor& tensor) {
  if (find_made(tensor) != nullptr) return;
  const auto same = [&](const Written& other) { return other.tensor.impl() == tensor.impl(); };
  if (std::any_of(written_.begin(), written_.end(), same)) return;
  const autograd::History* history = autograd::history_of(tensor);
  written_.push_back({tensor, autograd::edge_of(tensor), history != nullptr && history->leaf});
}

Tracer::~Tracer() {
  for (const Written& written : written_) {
    autograd::History* history = autograd::history_of(written.tensor);
    if (history == nullptr || history->edge.node.get() == written.edge.node.get()) continue;
    history->edge = written.edge;
    history->leaf = written.leaf;
  }
}

void Tracer::check_histories(const Tensor& tensor) const {
  for (const Written& written : written_) {
    if (tensor.defined() && tensor.impl() != written.tensor.impl()) continue;
    const autograd::History* history = autograd::history_of(written.tensor);
    if (history == nullptr || history->edge.node.get() == written.edge.node.get()) continue;
    throw Error(Subject{function_}, Code::invalid_argument,
                fmt::format("a tensor of shape {} from outside is overwritten with one that requires a gradient, "
                            "which a recording cannot pass on.",
                            written.tensor.dims()),
                "Write inside a NoGrad scope, or return the new elements as a result.");
  }
}

void Tracer::apply(const OpCall& call) {
  const SpreadValue* global = global_of(call);
  if (control::is_control(*call.op) && !ended()) return apply_control(call);
  if (call.op->form == OpForm::composite) {
    return composite::called(call.op->named, [&] { compose(call, *this); });
  }
  if (global != nullptr && !ended()) return apply_global(call, *global);
  ended() ? apply_eagerly(call) : apply_traced(call);
}

// The parts of the global tensors come back as calls without global tensors.
void Tracer::apply_global(const OpCall& call, const SpreadValue& value) {
  if (recorder_.in_region()) {
    throw Error(Subject{function_}, Code::unsupported,
                fmt::format("{} of a global tensor is called in a function of cond, while_loop or scan, and ranks "
                            "could disagree on whether it runs.",
                            call.op->name),
                "Call it beforehand, or select elements with tenon::where.");
  }
  for (const Tensor* input : call.inputs) {
    if (input != nullptr) note_global(*input);
  }
  for (const Tensor& output : call.outputs) {
    if (!output.defined() || global::value_of(output) == nullptr) continue;
    note_global(output);
    if (is_from_outside(output)) note_written(output);
  }
  value.interpreter().apply(call);
}

void Tracer::note_global(const Tensor& tensor) {
  const global::GlobalValue* value = global::value_of(tensor);
  if (value == nullptr || !is_from_outside(tensor)) return;
  if (tensor.impl()->gradient != nullptr) check_histories(tensor);
  captures_.note_handle(tensor);
  const auto same = [&](const Global& other) { return other.tensor.impl() == tensor.impl(); };
  if (std::none_of(globals_.begin(), globals_.end(), same)) globals_.push_back({tensor, value->writes->count});
}

void Tracer::apply_eagerly(const OpCall& call) {
  std::vector<Tensor> inputs(call.inputs.size());
  std::vector<const Tensor*> pointers(call.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    inputs[i] = real(*call.inputs[i]);
    pointers[i] = &inputs[i];
  }
  std::vector<Tensor> outputs(call.outputs.begin(), call.outputs.end());
  for (Tensor& output : outputs) {
    if (output.defined()) output = real(output);
  }
  OpCall now = call;
  now.inputs = pointers;
  now.outputs = outputs;
  const HostWatchScope nobody(nullptr);
  const InterpreterScope scope(eager_interpreter());
  eager_interpreter().apply(now);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!call.outputs[i].defined()) call.outputs[i] = outputs[i];
  }
}

// A value made in a region does not exist outside of it.
void Tracer::note_base(const Tensor& value) {
  if (parts_ == nullptr || recorder_.in_region() || value.impl()->storage != nullptr) return;
  bases_.push_back(base_of(value));
}

// The functions of control flow may return tensors from outside.
void Tracer::apply_control(const OpCall& call) {
  if (global_of(call) != nullptr) {
    throw Error(Subject{function_}, Code::unsupported,
                fmt::format("{} of a global tensor is not recorded.", call.op->name),
                "Call the function without compile.");
  }
  const auto& given = call.attributes_as<control::Call>();
  std::vector<control::Body> bodies;
  for (const control::Body& body : given.bodies) {
    bodies.push_back([&](const TensorList& inputs) {
      TensorList results = body(inputs);
      if (given.interpreter != this) control::refuse_gradients(*call.op, results);
      for (Tensor& result : results) {
        if (result.defined()) result = value_of(result);
      }
      return results;
    });
  }
  control::Call traced = given;
  traced.bodies = bodies;
  OpCall inner = call;
  inner.attributes = &traced;
  apply_traced(inner);
  for (const Tensor& result : *given.results) note_base(result);
}

void Tracer::apply_traced(const OpCall& call) {
  if (const auto offset = std::exchange(next_draw_, std::nullopt)) {
    call.outputs[0] = captures_.add_random(call, *offset);
    note_base(call.outputs[0]);
    return;
  }
  std::vector<Tensor> inputs(call.inputs.size());
  std::vector<const Tensor*> pointers(call.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const Tensor& given = *call.inputs[i];
    inputs[i] = !is_recorded(given) && is_frozen(given) ? given : value_of(given);
    pointers[i] = &inputs[i];
  }
  std::vector<Tensor> outputs(call.outputs.begin(), call.outputs.end());
  bool writes = false;
  for (Tensor& output : outputs) {
    if (!output.defined()) continue;
    writes = true;
    if (!is_recorded(output) && is_frozen(output)) {
      throw Error(Subject{function_}, Code::invalid_argument,
                  fmt::format("{} writes a tensor of shape {} that was frozen when the function was compiled.",
                              call.op->name, output.dims()),
                  "Remove the tensor from the option frozen.");
    }
    if (!is_recorded(output)) note_written(output);
    output = value_of(output);
  }
  OpCall traced = call;
  traced.inputs = pointers;
  traced.outputs = outputs;
  recorder_.apply(traced);
  if (writes) captures_.note_writes(*call.op);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (call.outputs[i].defined()) continue;
    if (!is_recorded(outputs[i])) made(outputs[i], true);
    note_base(outputs[i]);
    call.outputs[i] = outputs[i];
  }
}

}  // namespace tenon::compilation
