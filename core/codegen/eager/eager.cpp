// Computes calls with generated kernels: the ladder's third rung (core/interpreter/compiled_call.h).
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/background/background.h"
#include "core/codegen/eager/pattern.h"
#include "core/device/call_context.h"
#include "core/device/deterministic.h"
#include "core/graph/execute/executable.h"
#include "core/graph/fusion.h"
#include "core/graph/recent.h"
#include "core/graph/recorder.h"
#include "core/graph/regions/regions.h"
#include "core/graph/signature.h"
#include "core/interpreter/compiled_call.h"
#include "core/interpreter/eager.h"
#include "core/interpreter/operands.h"
#include "core/ops/attributes.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sized_ops.h"
#include "core/ops/sizes.h"
#include "core/primitive/compiled_module.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;

constexpr size_t kMostBaked = 16;  // most patterns of one op that differ only in scalars or sizes

// The program of a pattern: its op or its decomposition, as nodes that kernels compute.
struct PatternGraph {
  std::string why_not;  // reason why there is none, or empty
  std::optional<Graph> graph;
  std::vector<uint32_t> symbols;  // symbols of the graph's arena, by size of the pattern

  // Binds the symbols to the sizes of a call. Returns false if the graph does not serve these sizes.
  bool serves(const Pattern& pattern, symbolic::Values* sizes) const {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (!sizes->bind(symbols[i], pattern.sizes[i]).ok()) return false;
    }
    return graph::broken_guard(*graph, sizes).empty();
  }
};

// While it lives, the ops of this thread do not use the third rung: ops that are computed while a pattern is recorded
// must not be recorded.
using PatternScope = ContextScope<&CallContext::records_pattern>;

// Records one call with the symbols of its pattern.
class PatternRecorder {
 public:
  PatternRecorder(const OpCall& call, DeviceState* device, const Pattern& pattern)
      : call_(call), device_(device), pattern_(pattern), recorder_(Device(device)), sizes_(pattern.sizes.size()) {}

  // `apart`: records the decomposition of the op instead of the op.
  PatternGraph run(bool apart) {
    PatternGraph made;
    const InterpreterScope scope(recorder_);
    const PrecisionScope precision(call_.precision);
    std::vector<Tensor> inputs(pattern_.sources.size());
    std::vector<const Tensor*> pointers(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (pattern_.sources[i].dtype == DType::none) continue;
      inputs[i] = input(pattern_.sources[i]);
      pointers[i] = &inputs[i];
    }
    std::vector<Tensor> results(call_.outputs.size());
    OpCall call = call_;
    call.inputs = pointers;
    call.outputs = results;
    CastAttributes cast{};
    if (call.op == &op_row(OpId::cast)) {
      cast.dtype = call.attributes_as<CastAttributes>().dtype;
      call.attributes = &cast;
    }
    apart ? ops::decompose(call) : recorder_.apply(call);
    for (const SymDim size : sizes_) made.symbols.push_back(recorder_.arena().node(size).symbol);
    made.graph = recorder_.finish(results);
    graph::fuse_nodes(&*made.graph, graph::FusedGroups::all, false);
    made.why_not = left_over(*made.graph);
    return made;
  }

 private:
  std::string name(const Length& length) const {
    return length.size == kNoSize ? std::string() : fmt::format("n{}", length.size);
  }

  SymDim size(const Length& length) {
    if (length.size == kNoSize) return length.number;
    SymDim& known = sizes_[length.size];
    if (known.is_number()) known = recorder_.arena().input_size(name(length), length.number);
    return known;
  }

  Tensor input(const Source& source) {
    std::vector<std::string> names;
    for (const Length& dim : source.dims) names.push_back(name(dim));
    Tensor made = recorder_.input(source.dtype, source.numbers(), names, {}, Device(device_));
    const SymDims dims = sizes(made);
    for (size_t i = 0; i < source.dims.size(); ++i) {
      if (source.dims[i].size != kNoSize) sizes_[source.dims[i].size] = dims[static_cast<int32_t>(i)];
    }
    for (const auto& [dim, length] : source.slices) made = sized::slice(made, dim, 0, size(length));
    if (source.selects) made = sized::select(made, made.dims().rank() - 1, 0);
    if (!source.order.empty()) made = permute(made, source.order);
    for (const int64_t dim : source.ones) made = unsqueeze(made, dim);
    if (source.repeats.empty()) return made;
    SymDims all = sizes(made);
    for (const auto& [dim, length] : source.repeats) all[dim] = size(length);
    return expand(made, SizeList(all));
  }

  // The first node that no kernel can compute.
  static std::string left_over(const Graph& graph) {
    bool any = false;
    for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
      any = any || graph::is_fused(graph.node(id));
      if (graph::is_fused(graph.node(id)) || graph.node(id).op->form == OpForm::view) continue;
      return fmt::format("no kernel computes {}", graph.node(id).op->name);
    }
    return any ? std::string() : "it computes nothing";
  }

  const OpCall& call_;
  DeviceState* device_;
  const Pattern& pattern_;
  graph::Recorder recorder_;
  std::vector<SymDim> sizes_;  // by size of the pattern; a number until it has a symbol
};

std::shared_ptr<const PatternGraph> record(const OpCall& call, DeviceState* device, const Pattern& pattern) {
  const PatternScope scope(true);
  auto made = std::make_shared<PatternGraph>();
  for (const bool apart : {false, true}) {
    if (apart && !ops::has_decomposition(call)) break;
    try {
      *made = PatternRecorder(call, device, pattern).run(apart);
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw;
      *made = PatternGraph();
      made->why_not = error.status().message();
    }
    if (made->why_not.empty()) break;
  }
  return made;
}

// The recordings of each pattern and device, including refusals.
class Kept {
 public:
  // The number of calls of `pattern` that must still come before its kernels are made; null: none.
  std::shared_ptr<std::atomic<uint32_t>> calls_left(DeviceState* device, const Pattern& pattern) {
    const std::lock_guard lock(mutex_);
    const Name name(device, pattern.key);
    const std::shared_ptr<std::atomic<uint32_t>>* known = calls_.find(name);
    const auto calls = known != nullptr ? *known : std::make_shared<std::atomic<uint32_t>>(kCallsBeforeKernels);
    if (known == nullptr) calls_.keep(name, calls);
    return calls->load(std::memory_order_relaxed) == 0 ? nullptr : calls;
  }

  // The graph that serves `call`, with `sizes` set; or null, with the reason.
  std::shared_ptr<const PatternGraph> of(const OpCall& call, DeviceState* device, const Pattern& pattern,
                                         std::optional<symbolic::Values>* sizes, std::string* why_not) {
    const Name name(device, pattern.key);
    {
      const std::lock_guard lock(mutex_);
      if (const Recordings* known = all_.find(name)) {
        if (auto one = find(known->all, pattern, sizes, why_not); one != nullptr || !why_not->empty()) return one;
        if (full(known->all.size(), graph::kMostRecordings)) return no("its sizes change too often", why_not);
      } else if (pattern.baked && full(baked_[{device, call.op->id}], kMostBaked)) {
        return no("its scalars change too often", why_not);
      }
    }
    std::shared_ptr<const PatternGraph> made = record(call, device, pattern);
    const std::lock_guard lock(mutex_);
    const Graphs newest{made};
    if (Recordings* known = all_.find(name)) {
      known->all.push_back(std::move(made));
    } else {
      if (pattern.baked) ++baked_[{device, call.op->id}];
      const auto dropped = all_.keep(name, {newest, call.op->id, pattern.baked});
      if (dropped && dropped->second.baked) --baked_[{dropped->first.first, dropped->second.op}];
    }
    return find(newest, pattern, sizes, why_not);
  }

 private:
  using Name = std::pair<const DeviceState*, std::string>;
  using Graphs = std::vector<std::shared_ptr<const PatternGraph>>;
  struct Recordings {
    Graphs all;
    uint16_t op = 0;
    bool baked = false;
  };

  // Deterministic algorithms allow no limit: whether it is reached depends on earlier calls.
  static bool full(size_t count, size_t most) { return count >= most && !are_deterministic_algorithms_enabled(); }
  static std::shared_ptr<const PatternGraph> no(std::string why, std::string* why_not) {
    *why_not = std::move(why);
    return nullptr;
  }
  static std::shared_ptr<const PatternGraph> find(const Graphs& among, const Pattern& pattern,
                                                  std::optional<symbolic::Values>* sizes, std::string* why_not) {
    for (const std::shared_ptr<const PatternGraph>& one : among) {
      if (!one->why_not.empty()) return no(one->why_not, why_not);
      sizes->emplace(one->graph->arena());
      if (one->serves(pattern, &**sizes)) return one;
    }
    return nullptr;
  }

  std::mutex mutex_;
  graph::Recent<Name, Recordings> all_{graph::kMostPatterns};
  std::map<std::pair<const DeviceState*, uint16_t>, size_t> baked_;  // by op: number of patterns with scalars
  graph::Recent<Name, std::shared_ptr<std::atomic<uint32_t>>> calls_{graph::kMostCounted};
};

// Never destroyed, because programs may end after static objects.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

class Program final : public CompiledCall {
 public:
  Program(Pattern pattern, graph::Executable executable, DeviceState* device, const TensorMeta& result)
      : pattern_(std::move(pattern)), executable_(std::move(executable)), device_(device), result_(result) {
    if (pattern_.written_apart) result_.strides = contiguous_strides(result_.dims);
  }

  void run(const OpCall& call) const override {
    const InterpreterScope scope(eager_interpreter());
    TensorList inputs, bound(call.outputs.size());
    for (size_t i = 0; i < pattern_.sources.size(); ++i) {
      const Source& source = pattern_.sources[i];
      if (source.dtype != DType::none) inputs.push_back(buffer(call, i, source));
    }
    for (size_t i = 0; i < bound.size(); ++i) bound[i] = place(call.outputs[i]);
    const TensorList made = graph::run(executable_, inputs, bound);
    for (size_t i = 0; i < made.size(); ++i) {
      if (bound[i].defined()) continue;
      Tensor result = pattern_.folded ? make_view(made[i], result_.dtype, result_.dims, result_.strides, 0) : made[i];
      if (call.outputs[i].defined()) {
        copy_elements(call.outputs[i], result);
      } else {
        call.outputs[i] = std::move(result);
      }
    }
  }

  uint64_t bytes() const override {
    return sizeof(*this) + executable_.values.size() * sizeof(graph::Slot) +
           executable_.steps.size() * sizeof(graph::Step);
  }

 private:
  Tensor buffer(const OpCall& call, size_t i, const Source& source) const {
    if (source.scalar >= 0) {
      return full({}, call.scalars[static_cast<size_t>(source.scalar)], source.dtype, Device(device_));
    }
    const Dims dims = source.numbers();
    return make_view(*call.inputs[i], source.dtype, dims, contiguous_strides(dims), call.inputs[i]->impl()->offset);
  }

  // The tensor that the program writes in place of a given result; undefined if it makes its own.
  Tensor place(const Tensor& given) const {
    if (!given.defined() || pattern_.written_apart || (!pattern_.folded && !given.contiguous())) return {};
    const Dims& dims = pattern_.folded ? pattern_.folded_dims : given.dims();
    return make_view(given, given.dtype(), dims, contiguous_strides(dims), given.impl()->offset);
  }

  const Pattern pattern_;
  const graph::Executable executable_;
  DeviceState* const device_;
  TensorMeta result_;  // result of a folded call
};

// True if kernels of `graph` are being compiled; `awaited` counts them. If one is refused, `*why_not` has the reason.
bool waits(const Graph& graph, symbolic::Values* sizes, const std::shared_ptr<graph::AwaitedKernels>& awaited,
           std::string* why_not) {
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    if (!graph::is_fused(graph.node(id))) continue;
    const uint32_t before = awaited == nullptr ? 0 : awaited->asked.load();
    std::string why;
    if (graph::fused_launch(*graph.node(id).regions[0], sizes, awaited, &why) != nullptr) continue;
    if (awaited == nullptr || awaited->asked.load() == before) *why_not = why;
  }
  return awaited != nullptr && awaited->asked.load() != 0;
}

CompiledAnswer answer(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs) {
  CompiledAnswer made;
  Result<Pattern> pattern = pattern_of(call, device, outputs);
  if (!pattern.ok()) {
    made.why_not = pattern.status().message();
    return made;
  }
  made.baked = pattern.value().baked;
  const bool beside = compiling({}) == Compiling::beside;
  if (beside) made.calls_left = kept().calls_left(device, pattern.value());
  if (made.calls_left != nullptr) return made;
  std::optional<symbolic::Values> sizes;
  const std::shared_ptr<const PatternGraph> recorded = kept().of(call, device, pattern.value(), &sizes, &made.why_not);
  if (recorded == nullptr) {
    if (made.why_not.empty()) made.why_not = "its recording does not fit this call";
    return made;
  }
  std::shared_ptr<graph::AwaitedKernels> awaited;
  if (beside) awaited = std::make_shared<graph::AwaitedKernels>();
  const bool waiting = waits(*recorded->graph, &*sizes, awaited, &made.why_not);
  if (!made.why_not.empty()) return made;
  if (waiting) {
    made.left = {awaited, &awaited->left};
    return made;
  }
  graph::PrepareOptions options;
  options.whole_graphs = options.packed = false;
  options.fuse = true;
  options.compile = Compiling::wait;
  graph::Executable executable = graph::prepare(*recorded->graph, &*sizes, options);
  const auto computes = [](const graph::Step& step) { return step.fused != nullptr || graph::is_view(step); };
  if (!std::all_of(executable.steps.begin(), executable.steps.end(), computes)) {
    made.why_not = "it has steps that kernels cannot compute";
    return made;
  }
  made.call = std::make_shared<Program>(std::move(pattern).value(), std::move(executable), device, outputs[0]);
  return made;
}

}  // namespace
}  // namespace tenon::codegen

namespace tenon {

CompiledAnswer compiled_call(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs) {
  CompiledAnswer refused;
  if (!takes_modules(device)) {
    refused.why_not = "the device compiles no kernels";
  } else if (call_context.records_pattern) {
    refused.why_not = "it is computed while a kernel is recorded";
  } else {
    return codegen::answer(call, device, outputs);
  }
  return refused;
}

}  // namespace tenon
