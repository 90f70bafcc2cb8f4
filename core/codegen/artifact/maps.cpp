#include "core/codegen/artifact/maps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/codegen/loop/places.h"

namespace tenon::codegen {
namespace {

constexpr size_t kMostInputs = 64;

class Finder {
 public:
  explicit Finder(const Kernel& kernel) : kernel_(kernel), places_(kernel) {}

  MapFacts find() {
    MapFacts facts;
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.output) facts.over.push_back(0);
    }
    facts.is_map = std::all_of(kernel_.stages.begin(), kernel_.stages.end(),
                               [this](const Stage& stage) { return is_mapped(stage); });
    const std::array<int64_t, 2> group = group_of(kernel_);
    if (!facts.is_map || group[0] * group[1] != 1 || !in_one_loop()) return facts;
    for (Id id = 0; id < kernel_.stages.size(); ++id) {
      if (kernel_.stages[id].kind == StageKind::store) facts.over[number_of(kernel_.stages[id].buffer)] = before(id);
    }
    return facts;
  }

 private:
  bool is_one(Id buffer) const {
    const SymDim elements = kernel_.buffers[buffer].elements;
    return elements.is_number() && elements.number() == 1;
  }

  // True if an access to `buffer` is at the same position as all other accesses.
  bool at_place(Id buffer, SymDim index) {
    if (is_one(buffer)) return true;
    const SymDim elements = kernel_.buffers[buffer].elements;
    if (!place_) {
      place_ = index;
      elements_ = elements;
    }
    return identical(*place_, index) && identical(*elements_, elements);
  }

  bool is_mapped(const Stage& stage) {
    if (stage.kind == StageKind::reduce || !is_mapped(stage.value)) return false;
    return stage.kind != StageKind::store || at_place(stage.buffer, stage.index);
  }
  bool is_mapped(Id id) {
    const Expr& expr = kernel_.exprs[id];
    if (expr.kind == ExprKind::index || expr.kind == ExprKind::position) return false;
    if (expr.kind == ExprKind::load) return expr.args[0] == kNone && at_place(expr.target, expr.index);
    for (size_t i = 0; i < arg_count(expr); ++i) {
      if (!is_mapped(expr.args[i])) return false;
    }
    return true;
  }

  // True if all stages run one after another in the body of one loop.
  bool in_one_loop() const {
    const std::vector<const Node*>* loops = nullptr;
    for (Id id = 0; id < kernel_.stages.size(); ++id) {
      const std::vector<const Place*> places = places_.of(id);
      if (places.empty()) continue;  // inlined
      if (places.size() > 1 || (loops != nullptr && *loops != places[0]->loops)) return false;
      loops = &places[0]->loops;
    }
    return loops != nullptr;
  }

  // The buffers that a stage reads where it runs, also through inlined stages.
  void add_loads(Id id, std::set<Id>* loads) const {
    const Expr& expr = kernel_.exprs[id];
    if (expr.kind == ExprKind::load) loads->insert(expr.target);
    for (size_t i = 0; i < arg_count(expr); ++i) add_loads(expr.args[i], loads);
    if (expr.kind != ExprKind::stage) return;
    const Stage& stage = kernel_.stages[expr.target];
    if (stage.storage == Storage::inlined) add_loads(stage.value, loads);
  }

  // The index of an input among the inputs, or of an output among the outputs.
  size_t number_of(Id buffer) const {
    const bool output = kernel_.buffers[buffer].output;
    return static_cast<size_t>(std::count_if(kernel_.buffers.begin(), kernel_.buffers.begin() + buffer,
                                             [&](const Buffer& each) { return each.output == output; }));
  }

  // A bit mask of the inputs that the output of `store` may overwrite: they have its dtype and size, and no later stage
  // reads them.
  uint64_t before(Id store) const {
    const Id written = kernel_.stages[store].buffer;
    const size_t at = places_.of(store)[0]->number;
    std::set<Id> later;
    for (Id id = 0; id < kernel_.stages.size(); ++id) {
      const std::vector<const Place*> places = places_.of(id);
      if (!places.empty() && places[0]->number > at) add_loads(kernel_.stages[id].value, &later);
    }
    uint64_t bits = 0;
    for (Id id = 0; id < kernel_.buffers.size(); ++id) {
      const Buffer& buffer = kernel_.buffers[id];
      if (buffer.output || buffer.dtype != kernel_.buffers[written].dtype || later.count(id) != 0) continue;
      const bool alike = identical(buffer.elements, kernel_.buffers[written].elements);
      if (alike && number_of(id) < kMostInputs) bits |= uint64_t{1} << number_of(id);
    }
    return bits;
  }

  const Kernel& kernel_;
  const Places places_;
  std::optional<SymDim> place_, elements_;
};

}  // namespace

MapFacts map_facts(const Kernel& kernel) { return Finder(kernel).find(); }

}  // namespace tenon::codegen
