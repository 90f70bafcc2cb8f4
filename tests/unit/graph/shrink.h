// Tests rewritings of random graphs: finds what a rewriting does wrong, and the smallest graph, as text, that shows it.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "primitives/text/format.h"
#include "tests/unit/graph/random_program.h"

namespace tenon::graph {

// Runs into outputs that hold a pattern that no result has. Nodes of regions run one by one; unit_fusion runs kernels.
inline TensorList results_of(const Graph& graph, uint32_t seed) {
  const Executable program = prepare(graph, {.fuse = false});
  TensorList inputs, outputs;
  for (uint32_t id : program.inputs) {
    const TensorMeta& meta = program.values[id].meta;
    const Tensor given = random_tensor(meta.dims, seed + 100000 * static_cast<uint32_t>(inputs.size()));
    inputs.push_back(is_floating(meta.dtype) ? cast(given, meta.dtype) : random_numbers(meta.dims, seed));
    if (!is_floating(meta.dtype)) inputs.back() = cast(inputs.back(), meta.dtype);
  }
  for (ValueId id : graph.outputs()) {
    const TensorMeta& meta = program.values[id].meta;
    const std::string poison(static_cast<size_t>(dtype_bytes(meta.dtype, element_count(meta.dims))), '\x5a');
    outputs.push_back(Tensor::copy_from_host(poison.data(), meta.dims, meta.dtype, Device::current()));
  }
  return run(program, inputs, outputs);
}

inline std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

// Returns the first difference between results. Without `exact`, floating results may differ slightly.
inline std::optional<std::string> difference(const TensorList& got, const TensorList& expected, bool exact) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (bytes_of(got[i]) == bytes_of(expected[i])) continue;
    if (exact || !is_floating(expected[i].dtype())) return fmt::format("output {} has other bits", i);
    const std::vector<double> a = cast(got[i], DType::f64).to_host<double>();
    const std::vector<double> b = cast(expected[i], DType::f64).to_host<double>();
    for (size_t k = 0; k < a.size(); ++k) {
      const bool near = std::fabs(a[k] - b[k]) <= 1e-4 * (1 + std::fabs(b[k]));
      if (!near && !(std::isnan(a[k]) && std::isnan(b[k])))
        return fmt::format("output {}[{}] is {}, not {}", i, k, a[k], b[k]);
    }
  }
  return std::nullopt;
}

// One pass, or all passes.
struct Rewriting {
  std::string name;
  bool exact = false;
  std::function<void(Graph*)> run;
  bool idempotent = true;
};

// Returns what `rewriting` does wrong to the graph of `text`; nothing if it is right.
inline std::optional<std::string> fault(const std::string& text, const Rewriting& rewriting, uint32_t seed) {
  Graph plain = parse(text), graph = parse(text);
  const TensorList expected = results_of(plain, seed);
  try {
    rewriting.run(&graph);
    if (const Status status = verify(graph); !status.ok()) return status.message();
    const std::string once = print(graph);
    if (rewriting.idempotent) rewriting.run(&graph);
    if (print(graph) != once) return "it is not idempotent";
    return difference(results_of(graph, seed), expected, rewriting.exact);
  } catch (const Error& error) {
    return std::string(error.what());
  }
}

// Graphs smaller than `text`: without one output, or without one node, whose users then read one of its inputs of the
// same type or a new input.
inline std::vector<std::string> smaller(const std::string& text) {
  std::vector<std::string> all;
  const Graph graph = parse(text);
  const auto add = [&](Graph&& changed) {
    remove_dead_code(&changed);
    all.push_back(print(changed));
  };
  for (size_t i = 0; graph.outputs().size() > 1 && i < graph.outputs().size(); ++i) {
    Graph changed = parse(text);
    changed.set_outputs({changed.outputs()[i]});
    add(std::move(changed));
  }
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    if (graph.node(id).results.size() != 1) continue;
    const Value& result = graph[graph.node(id).results[0]];
    for (ValueId input : graph.node(id).inputs) {
      if (input == 0 || graph[input].dtype != result.dtype || !(to_string(graph[input].dims) == to_string(result.dims)))
        continue;
      Graph changed = parse(text);
      changed.replace(changed.node(id).results[0], input);
      add(std::move(changed));
    }
    Graph changed = parse(text);
    changed.replace(changed.node(id).results[0], changed.add_input(result.dtype, result.dims, result.device));
    add(std::move(changed));
  }
  return all;
}

// Makes the failing graph `text` smaller as long as it still fails.
inline std::string shrink(std::string text, const Rewriting& rewriting, uint32_t seed) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string& candidate : smaller(text)) {
      bool fails = false;
      try {
        fails = candidate.size() < text.size() && fault(candidate, rewriting, seed).has_value();
      } catch (const Error&) {
        continue;  // without these lines the text is not a graph that can run
      }
      if (!fails) continue;
      text = candidate;
      found = true;
      break;
    }
  }
  return text;
}

}  // namespace tenon::graph
