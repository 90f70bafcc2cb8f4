// Compares the second recording of a function with the first.
#include <algorithm>
#include <unordered_map>

#include "core/compile/parts.h"
#include "core/compile/recorded_function.h"
#include "core/graph/text.h"
#include "core/ops/op_call.h"
#include "core/ops/scalar_patch.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.dims() == b.dims()) || a.device() != b.device()) return false;
  if (a.impl()->storage == b.impl()->storage && geometry_of(a) == geometry_of(b)) return true;
  const InterpreterScope scope(eager_interpreter());
  std::string of_a(static_cast<size_t>(a.bytes()), '\0'), of_b = of_a;
  a.copy_to_host(of_a.data());
  b.copy_to_host(of_b.data());
  return of_a == of_b;
}

bool same_layout(const std::optional<global::Facts>& a, const std::optional<global::Facts>& b) {
  return a.has_value() == b.has_value() && (!a || (a->layout == b->layout && a->dims == b->dims));
}

bool same_dims(const SymDims& a, const SymDims& b, const Graph& of_a, const Graph& of_b) {
  if (a.rank() != b.rank()) return false;
  for (int32_t i = 0; i < a.rank(); ++i) {
    if (of_a.arena().text(a[i]) != of_b.arena().text(b[i])) return false;
  }
  return true;
}

// The line of `node` in the text of `program`.
std::string line_of(const Graph& program, NodeId node) {
  std::string constants;
  const std::string text = graph::print(program, {.most_bytes = 16, .constants = &constants});
  const std::string begin = fmt::format("\n%{}", program.node(node).results[0]);
  size_t at = text.find(begin + " ");
  at = at == std::string::npos ? text.find(begin + ",") : at;
  return at == std::string::npos ? std::string(program.node(node).op->name)
                                 : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

// Finds the first difference of two programs.
class Programs {
 public:
  Programs(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  // Compares sizes, dtypes and devices of the inputs.
  bool same_inputs() {
    if (a_.inputs().size() != b_.inputs().size()) return false;
    bool same = true;
    for (size_t i = 0; i < a_.inputs().size(); ++i) {
      const graph::Value &a = a_[a_.inputs()[i]], &b = b_[b_.inputs()[i]];
      same = same && a.dtype == b.dtype && a.device == b.device && same_dims(a.dims, b.dims, a_, b_);
    }
    return same;
  }

  // Matches the inputs of both by position.
  void match_inputs() {
    for (size_t i = 0; i < a_.inputs().size() && i < b_.inputs().size(); ++i) values_[a_.inputs()[i]] = b_.inputs()[i];
  }

  std::string nodes() {
    NodeId a = a_.first(), b = b_.first();
    size_t number = 1;
    for (; a != kNoNode && b != kNoNode; a = a_.next(a), b = b_.next(b), ++number) {
      const std::string what = of_nodes(a_.node(a), b_.node(b));
      if (!what.empty()) {
        return fmt::format("{} of op {} differs\n  first: {}\n  then:  {}", what, number, line_of(a_, a),
                           line_of(b_, b));
      }
      for (size_t i = 0; i < a_.node(a).results.size(); ++i) values_[a_.node(a).results[i]] = b_.node(b).results[i];
    }
    if (a == kNoNode && b == kNoNode) return "";
    const bool more = a == kNoNode;
    return fmt::format("it called {} ops first, and {} then; {} is {}\n  {}", a_.size(), b_.size(),
                       (more ? b_.node(b) : a_.node(a)).op->name, more ? "new" : "missing",
                       more ? line_of(b_, b) : line_of(a_, a));
  }

  bool same_value(ValueId a, ValueId b) {
    if (a == 0 || b == 0) return a == b;
    const auto known = values_.find(a);
    if (known != values_.end()) return known->second == b;
    const Tensor &of_a = a_[a].constant, &of_b = b_[b].constant;
    if (!of_a.defined() || !of_b.defined() || !same_elements(of_a, of_b)) return false;
    values_[a] = b;
    return true;
  }

  std::string origins(ValueId a, ValueId b) const {
    if (a == 0 || b == 0) return "";
    const bool from_host[] = {a_[a].constant.defined(), b_[b].constant.defined()};
    if (from_host[0] && from_host[1]) return ", elements that came from the host,";
    if (from_host[0]) return ", which the function made first and found then,";
    return from_host[1] ? ", which the function found first and made then," : "";
  }

  // Compares expressions as expressions, because the attributes contain their values at the hints.
  bool same_attributes(const Node& a, const Node& b) const {
    if (a.attributes.size() != b.attributes.size() || a.patches.size() != b.patches.size()) return false;
    std::vector<uint64_t> words = a.attributes;
    for (size_t i = 0; i < a.patches.size(); ++i) {
      const Patch &of_a = a.patches[i], &of_b = b.patches[i];
      if (of_a.word != of_b.word || a_.arena().text(of_a.size) != b_.arena().text(of_b.size)) return false;
      if (of_a.word < kScalarPatch) words[of_a.word] = b.attributes[of_b.word];
    }
    return words == b.attributes;
  }

  // The difference of two nodes, as the beginning of a sentence.
  std::string of_nodes(const Node& a, const Node& b) {
    if (a.op != b.op) return fmt::format("{}, then {}: the kind", a.op->name, b.op->name);
    const auto named = [&](const std::string& what) { return fmt::format("{}: {}", a.op->name, what); };
    if (!same_attributes(a, b)) return named("an attribute");
    if (a.scalars.size() != b.scalars.size()) return named("the number of scalars");
    for (size_t i = 0; i < a.scalars.size(); ++i) {
      const auto is_open = [&](const Patch& patch) { return patch.word == kScalarPatch + i; };
      if (std::any_of(a.patches.begin(), a.patches.end(), is_open)) continue;
      const bool same =
          a.scalars[i].dtype() == b.scalars[i].dtype() &&
          a.scalars[i].to_abi(a.scalars[i].dtype()).value.u64 == b.scalars[i].to_abi(b.scalars[i].dtype()).value.u64;
      if (!same) return named("a number");
    }
    if (a.precision != b.precision) return named("the precision");
    if (a.device != b.device) return named("the device");
    if (a.results.size() != b.results.size() || a.inputs.size() != b.inputs.size())
      return named("the number of tensors");
    if (a.regions.size() != b.regions.size()) return named("the number of functions");
    for (size_t i = 0; i < a.regions.size(); ++i) {
      if (std::string text = of_regions(*a.regions[i], *b.regions[i]); !text.empty()) return text;
    }
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (!same_value(a.inputs[i], b.inputs[i])) {
        return named(fmt::format("argument {}{}", i, origins(a.inputs[i], b.inputs[i])));
      }
    }
    for (size_t i = 0; i < a.results.size(); ++i) {
      const graph::Value &of_a = a_[a.results[i]], &of_b = b_[b.results[i]];
      if (of_a.dtype != of_b.dtype || !same_dims(of_a.dims, of_b.dims, a_, b_)) return named("the shape of a result");
    }
    return "";
  }

 private:
  static std::string of_regions(const Graph& a, const Graph& b) {
    Programs regions(a, b);
    if (!regions.same_inputs()) return "what a function reads, or its shape,";
    regions.match_inputs();
    if (std::string text = regions.nodes(); !text.empty()) return text;
    bool same = a.outputs().size() == b.outputs().size();
    for (size_t i = 0; same && i < a.outputs().size(); ++i) same = regions.same_value(a.outputs()[i], b.outputs()[i]);
    return same ? "" : "a result of a function";
  }

  const Graph& a_;
  const Graph& b_;
  std::unordered_map<ValueId, ValueId> values_;  // by value of the first program: the value of the second
};

class Comparison {
 public:
  Comparison(const RecordedFunction& first, const RecordedFunction& second)
      : first_(first), second_(second), programs_(first.recorded, second.recorded) {}

  std::string run() {
    programs_.match_inputs();
    if (std::string text = arguments(); !text.empty()) return text;
    if (std::string text = programs_.nodes(); !text.empty()) return text;
    return ends();
  }

 private:
  std::string arguments() {
    const size_t count = std::min(first_.arguments.size(), second_.arguments.size());
    for (size_t i = 0; i < count; ++i) {
      const Argument& a = first_.arguments[i];
      const Argument& b = second_.arguments[i];
      if (a.of == RootOf::random && b.of == RootOf::random && a.draw.op != b.draw.op) {
        return fmt::format("it drew numbers by {} first, and by {} then", a.draw.op->name, b.draw.op->name);
      }
      if (a.of != RootOf::capture || b.of != RootOf::capture || a.slot) continue;
      if (a.tensor.impl()->storage == b.tensor.impl()->storage) continue;
      return fmt::format("it used a tensor of shape {} from outside first, and another one of shape {} then{}",
                         a.tensor.dims(), b.tensor.dims(), first_use(first_.recorded, first_.recorded.inputs()[i]));
    }
    return "";
  }

  // The first node that uses `value`, as ", in add".
  static std::string first_use(const Graph& program, ValueId value) {
    for (NodeId id = program.first(); id != kNoNode; id = program.next(id)) {
      const std::vector<ValueId>& inputs = program.node(id).inputs;
      if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) {
        return fmt::format(", in {}", program.node(id).op->name);
      }
    }
    return "";
  }

  std::string ends() {
    if (first_.results.size() != second_.results.size()) {
      return fmt::format("it gave {} results first, and {} then", first_.results.size(), second_.results.size());
    }
    for (size_t i = 0; i < first_.results.size(); ++i) {
      const ResultSource &a = first_.results[i], &b = second_.results[i];
      const bool same = a.kind == b.kind && same_layout(a.global, b.global) &&
                        (a.kind != ResultSource::outside ? a.index == b.index : a.tensor.impl() == b.tensor.impl());
      if (!same) return fmt::format("result {} is another tensor", i);
    }
    if (first_.arguments.size() != second_.arguments.size()) {
      return fmt::format("it used {} tensors first, and {} then", first_.arguments.size(), second_.arguments.size());
    }
    const std::span<const ValueId> a_outputs = first_.recorded.outputs(), b_outputs = second_.recorded.outputs();
    if (a_outputs.size() != b_outputs.size()) {
      return fmt::format("it wrote {} tensors first, and {} then", first_.writes.size(), second_.writes.size());
    }
    if (!programs_.same_inputs()) return "a tensor that it used, or random numbers, had another shape or dtype";
    for (size_t i = 0; i < a_outputs.size(); ++i) {
      if (programs_.same_value(a_outputs[i], b_outputs[i])) continue;
      return i < first_.results.size()
                 ? fmt::format("result {} comes from another op or from other data of the host", i)
                 : std::string("a tensor from outside is overwritten with another value");
    }
    return slots();
  }

  std::string slots() const {
    const auto same = [](const SlotUpdate& a, const SlotUpdate& b) {
      return a.kind == b.kind && same_layout(a.global, b.global) && a.index == b.index && a.slot.slot == b.slot.slot &&
             a.slot.input == b.slot.input && a.tensor.impl() == b.tensor.impl();
    };
    return std::equal(first_.slots.begin(), first_.slots.end(), second_.slots.begin(), second_.slots.end(), same)
               ? ""
               : "it left other gradients on leaves";
  }

  const RecordedFunction& first_;
  const RecordedFunction& second_;
  Programs programs_;
};

}  // namespace

std::string difference(const RecordedFunction& first, const RecordedFunction& second) {
  return Comparison(first, second).run();
}

bool same_program(const Graph& a, const Graph& b) {
  Programs programs(a, b);
  if (!programs.same_inputs() || a.outputs().size() != b.outputs().size() || a.size() != b.size()) return false;
  programs.match_inputs();
  if (!programs.nodes().empty()) return false;
  return std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(),
                    [&](ValueId of_a, ValueId of_b) { return programs.same_value(of_a, of_b); });
}

}  // namespace tenon::compilation
