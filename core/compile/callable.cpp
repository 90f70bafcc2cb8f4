#include "core/compile/callable.h"

#include <algorithm>

#include "core/autograd/autograd.h"
#include "core/autograd/interpreter.h"
#include "core/global/interpreter.h"
#include "core/graph/passes/passes.h"
#include "core/tensor/recording.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

// True if ops of the calling thread reach the eager interpreter, not a recording.
bool computes() { return &autograd::interpreter_below() == &eager_interpreter(); }

void check_frozen(const CompileOptions& options, const RecordedFunction& recording) {
  for (const auto& [tensor, version] : recording.frozen) {
    if (write_count(tensor) == version) continue;
    throw Error(Subject{options.name}, Code::invalid_argument,
                fmt::format("{} has written into a tensor of shape {} that was frozen when the function was "
                            "compiled.",
                            last_writer(tensor), tensor.dims()),
                "Compile the function again after the write, or remove the tensor from the option frozen.");
  }
}

std::vector<ArgumentDims> dims_of(const RecordedFunction& recording) {
  std::vector<size_t> begins{0};  // where the dims of each argument begin
  for (const size_t rank : recording.argument_ranks) begins.push_back(begins.back() + rank);
  std::vector<ArgumentDims> all;
  for (size_t i = 0; i < recording.arguments.size(); ++i) {
    const Argument& argument = recording.arguments[i];
    if (argument.of != RootOf::input || argument.whole || argument.part) continue;
    all.push_back({recording.recorded[recording.recorded.inputs()[i]].dims, begins[argument.input]});
  }
  return all;
}

// The sizes of a call. Errors: invalid_argument if a size differs from a fixed one, or if its symbol excludes it.
symbolic::Values values_of(const std::vector<ArgumentDims>& arguments, const graph::Graph& graph,
                           const CallShape& shape) {
  symbolic::Values values(graph.arena());
  for (const ArgumentDims& argument : arguments) {
    const SymDims& dims = argument.dims;
    for (int32_t axis = 0; axis < dims.rank(); ++axis) {
      const int64_t given = shape.sizes[argument.begin + static_cast<size_t>(axis)];
      if (dims[axis].is_number()) {
        if (dims[axis].number() != given) throw Error(Code::invalid_argument, "a size is fixed");
      } else if (const symbolic::Node& node = graph.arena().node(dims[axis]); node.kind == symbolic::Kind::symbol) {
        throw_if_error(values.bind(node.symbol, given));
      }
    }
  }
  return values;
}

std::shared_ptr<Backward> backward_of(const RecordedFunction& recording, const std::vector<ArgumentDims>& dims,
                                      const Making& making) {
  return recording.backward == nullptr ? nullptr : std::make_shared<Backward>(recording.backward, dims, making);
}

}  // namespace

void refuse_gone(const std::string& name) {
  throw Error(Subject{"backward"}, Code::invalid_argument,
              fmt::format("{} was destroyed, but its gradient must be differentiated again.", name),
              "Keep the compiled function alive while backward with create_graph is called on its results.");
}

Making::Making(const CompileOptions& options) {
  passes.exact = options.exact;
  passes.fuse = options.fuse;
  prepare.packed = !options.exact;
  prepare.fuse = options.fuse;
  prepare.compile = options.compile;
}

std::shared_ptr<const BackwardProgram> Backward::program(Programs* programs, const CallShape& shape,
                                                         const std::vector<bool>& comes) {
  const std::lock_guard lock(programs->mutex);
  std::shared_ptr<const BackwardProgram>& known_program = programs->backward[comes];
  if (known_program != nullptr && !graph::is_outdated(known_program->program)) return known_program;
  const graph::PartOfBackward* part = nullptr;
  {
    const std::lock_guard own_lock(mutex_);
    const auto [known, is_new] = parts_.try_emplace(comes, graph::PartOfBackward{graph::Graph(""), {}});
    if (is_new) {
      known->second = graph::part_of(part_->graph, part_->saved.size(), comes);
      graph::optimise(&known->second.graph, making_.passes);
    }
    part = &known->second;
  }
  symbolic::Values sizes = values_of(dims_, part->graph, shape);
  BackwardProgram made{graph::prepare(part->graph, &sizes, making_.prepare), part->outputs};
  return known_program = std::make_shared<const BackwardProgram>(std::move(made));
}

Entry::Entry(RecordedFunction recording, const Making& making)
    : recording_(std::move(recording)),
      making_(making),
      dims_(dims_of(recording_)),
      backward_(backward_of(recording_, dims_, making)) {}

bool Entry::serves(const CallShape& shape, const TensorList& inputs) const {
  if (recording_.shape.fixed != shape.fixed) return false;
  const auto holds = [&](const Guard& guard) { return guard.holds(inputs); };
  if (!std::all_of(recording_.guards.begin(), recording_.guards.end(), holds)) return false;
  if (recording_.shape.sizes == shape.sizes) return true;
  if (recording_.recorded.arena().symbols().empty()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (programs_.contains(shape.sizes)) return true;
  }
  try {
    return values_of(dims_, recording_.recorded, shape).broken_guard() == nullptr;
  } catch (const Error&) {
    return false;  // a size that the symbol excludes
  }
}

std::shared_ptr<Programs> Entry::programs(const CallShape& shape) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Programs>* found = programs_.find(shape.sizes);
  if (found != nullptr && !graph::is_outdated((*found)->forward)) return *found;
  auto made = std::make_shared<Programs>();
  symbolic::Values sizes = values_of(dims_, recording_.forward, shape);
  graph::PrepareOptions options = making_.prepare;
  options.over.resize(recording_.forward.outputs().size(), graph::kNoInput);
  for (const Write& write : recording_.writes) options.over[write.output] = static_cast<uint32_t>(write.argument);
  if (!programs_.empty()) options.like = &programs_.begin()->second->forward;
  made->forward = graph::prepare(recording_.forward, &sizes, options);
  programs_.keep(shape.sizes, made);
  return made;
}

size_t Entry::prepared() const {
  const std::lock_guard lock(mutex_);
  return programs_.size();
}

CompileMemory Entry::memory() const {
  CompileMemory memory = recording_.memory;
  std::shared_ptr<Programs> newest;
  {
    const std::lock_guard lock(mutex_);
    if (!programs_.empty()) newest = programs_.begin()->second;
  }
  if (newest == nullptr) return memory;
  memory.planned = graph::planned_memory(newest->forward).peak;
  const std::lock_guard lock(newest->mutex);
  for (const auto& [comes, half] : newest->backward) {
    if (half != nullptr) memory.planned = std::max(memory.planned, graph::planned_memory(half->program).peak);
  }
  return memory;
}

std::shared_ptr<Entry> Callable::find(const CallShape& shape, const TensorList& inputs) const {
  const std::shared_lock lock(mutex_);
  for (const std::shared_ptr<Entry>& entry : entries_) {
    if (entry->serves(shape, inputs)) return entry;
  }
  return nullptr;
}

std::optional<TensorList> Callable::check(const std::shared_ptr<Entry>& entry, const CallShape& shape,
                                          const TensorList& inputs) {
  throw_if_error(entry->differs);
  Taken again = record(function_, options_, inputs, shape, parts(), writes_);
  if (!again.recording) {
    const std::lock_guard lock(mutex_);
    std::erase(entries_, entry);
    return std::move(again.results);
  }
  const std::string differs = difference(entry->recording(), *again.recording);
  if (!differs.empty()) {
    entry->differs = Status(
        Subject{options_.name}, Code::invalid_argument,
        fmt::format("its second call ran differently from its first call: {}.", differs),
        "Make every value that changes between calls an argument, or a tensor from outside, which each run reads.");
    throw_if_error(entry->differs);
  }
  entry->checked.store(true, std::memory_order_release);
  return std::nullopt;
}

void Callable::tell(const TensorList& inputs) {
  if (std::exchange(told_, true)) return;
  loader::log(loader::LogTopic::compile, loader::LogLevel::warning,
              fmt::format("{}: it was recorded for {} kinds of calls; the call with {} is of a further kind, and such "
                          "calls run eagerly.",
                          options_.name, kMostRecordings, text_of(inputs)));
}

TensorList Callable::learn(const CallShape& shape, const TensorList& inputs, const Replay* replay) {
  const std::lock_guard lock(recording_);
  std::shared_ptr<Entry> entry = find(shape, inputs);
  if (entry != nullptr) {
    if (entry->checked.load(std::memory_order_acquire)) return run_entry(entry, shape, inputs, replay);
    std::optional<TensorList> results = check(entry, shape, inputs);
    return results ? *std::move(results) : run_entry(entry, shape, inputs, replay);
  }
  if (entries_.size() == kMostRecordings || parts_.full()) {
    if (writes_ == Writes::dropped) {
      refuse_eager(fmt::format("it was requested for more than {} kinds of calls", kMostRecordings));
    }
    tell(inputs);
    eager_.fetch_add(1, std::memory_order_relaxed);
    return function_(inputs);
  }
  Taken taken = record(function_, options_, inputs, shape, parts(), writes_);
  if (!taken.recording) {
    eager_.fetch_add(1, std::memory_order_relaxed);
    return std::move(taken.results);
  }
  entry = std::make_shared<Entry>(*std::move(taken.recording), Making(options_));
  if (parts_.used())
    return run_entry(entry, shape, inputs, replay);  // a function that runs in parts is called on every run
  entry->checked.store(!options_.check, std::memory_order_relaxed);
  {
    const std::lock_guard entries_lock(mutex_);
    entries_.push_back(entry);
  }
  return run_entry(entry, shape, inputs, replay);
}

TensorList Callable::run_entry(const std::shared_ptr<Entry>& entry, const CallShape& shape, const TensorList& inputs,
                               const Replay* replay) {
  check_frozen(options_, entry->recording());
  runs_.fetch_add(1, std::memory_order_relaxed);
  return run(entry, shared_from_this(), shape, inputs, replay);
}

void Callable::refuse_eager(std::string_view why) const {
  throw Error(Subject{options_.name}, Code::unsupported, fmt::format("{}.", why),
              "Call the function without compile if you need create_graph.");
}

TensorList Callable::call(const TensorList& inputs, const Replay* replay) {
  if (!computes()) {
    if (writes_ == Writes::dropped) refuse_eager("it was requested inside another recording");
    return function_(inputs);
  }
  for (const Tensor& input : inputs) {
    if (input.defined() && global::value_of(input) != nullptr) global::refresh(input);
  }
  const CallShape shape = shape_of(options_.name, inputs);
  const std::shared_ptr<Entry> entry = find(shape, inputs);
  if (entry == nullptr || !entry->checked.load(std::memory_order_acquire)) return learn(shape, inputs, replay);
  return run_entry(entry, shape, inputs, replay);
}

std::shared_ptr<GradientFunction> Callable::gradient_function(Entry* entry, const std::vector<bool>& comes) {
  const auto made = std::make_shared<GradientFunction>();
  // `entry` owns the function made here, so the function must not own `entry`.
  const auto function = [weak = weak_from_this(), name = options_.name, made = made.get(), entry,
                         comes](const TensorList& given) {
    const std::shared_ptr<Callable> self = locked(weak, name);
    const BackwardPart& part = entry->backward()->part();
    const auto end = given.begin() + static_cast<ptrdiff_t>(entry->recording().argument_ranks.size());
    const TensorList inputs(given.begin(), end);
    const TensorList results = self->function_(inputs);
    TensorList outputs, targets;
    for (size_t i = 0; i < comes.size(); ++i) {
      if (comes[i]) outputs.push_back(results[part.results[i].number]);
    }
    for (const BackwardPart::Target& target : part.targets) {
      targets.push_back(target.of(inputs, entry->recording().wanting));
    }
    TensorList found =
        grad(outputs, targets, TensorList(end, given.end()), {.create_graph = true, .allow_unused = true});
    std::vector<bool> comes_to;
    for (const Tensor& gradient : found) comes_to.push_back(gradient.defined());
    std::erase_if(found, [](const Tensor& gradient) { return !gradient.defined(); });
    const std::lock_guard lock(made->mutex);
    made->comes_to = std::move(comes_to);
    return found;
  };
  CompileOptions options = options_;
  options.name = fmt::format("the gradient of {}", options_.name);
  options.whole = true;
  options.memory_limit = 0;
  made->callable = std::make_shared<Callable>(function, std::move(options), Writes::dropped);
  return made;
}

TensorList Callable::gradients(const std::shared_ptr<Entry>& entry, const std::vector<bool>& comes,
                               const TensorList& inputs, const TensorList& gradients, const Replay& replay) {
  const auto function = entry->gradient(comes, [&] { return gradient_function(entry.get(), comes); });
  TensorList arguments = inputs;
  arguments.insert(arguments.end(), gradients.begin(), gradients.end());
  const TensorList found = function->callable->call(arguments, &replay);
  const std::lock_guard lock(function->mutex);
  TensorList all;
  size_t next = 0;
  for (const bool here : function->comes_to) all.push_back(here ? found[next++] : Tensor());
  return all;
}

CompileStats Callable::stats() const {
  CompileStats stats;
  const std::shared_lock lock(mutex_);
  stats.recordings = entries_.size() + parts_.size();
  for (const std::shared_ptr<Entry>& entry : entries_) stats.executables += entry->prepared();
  stats.runs = runs_.load(std::memory_order_relaxed);
  stats.eager = eager_.load(std::memory_order_relaxed);
  return stats;
}

std::vector<CompileMemory> Callable::memory() const {
  std::vector<CompileMemory> all;
  const std::shared_lock lock(mutex_);
  for (const std::shared_ptr<Entry>& entry : entries_) all.push_back(entry->memory());
  return all;
}

}  // namespace tenon::compilation

namespace tenon {

CompiledList::CompiledList(std::function<TensorList(const TensorList&)> function, CompileOptions options)
    : callable_(std::make_shared<compilation::Callable>(std::move(function), std::move(options))) {}

TensorList CompiledList::operator()(const TensorList& inputs) const { return callable_->call(inputs); }

CompileStats CompiledList::stats() const { return callable_->stats(); }

std::vector<CompileMemory> CompiledList::memory() const { return callable_->memory(); }

void compilation::check_count(const TensorList& inputs, size_t count) {
  if (inputs.size() == count) return;
  throw Error(Subject{"compile"}, Code::invalid_argument,
              fmt::format("the function takes {} tensors, but {} were given.", count, inputs.size()));
}

}  // namespace tenon
